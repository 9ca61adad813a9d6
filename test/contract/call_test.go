// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
	"github.com/hashicorp/nomad-autoscaler/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestPluginInfoIsTheDriverAndATarget(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		info := must1(launch(t, binary).target.PluginInfo())(t)
		if info.Name != "harvester" || info.PluginType != sdk.PluginTypeTarget {
			t.Errorf("%+v", info)
		}
	})
}

func TestHealthOfThePluginIsServing(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		if err := launch(t, binary).rpc.Ping(); err != nil {
			t.Error(err)
		}
	})
}

func TestConfigReachesTheService(t *testing.T) {
	h := launch(t, fakePlugin)
	for _, value := range []string{"first", "second, with ünïcode and a newline\n"} {
		must(t, h.target.SetConfig(map[string]string{"echo": value}))
		if got := h.status(nil).Meta["config"]; got != value {
			t.Errorf("config %q, want %q", got, value)
		}
	}
}

func TestPolicyAndStatusTravelUnchanged(t *testing.T) {
	policy := map[string]string{"do": "echo", "empty": "", "ünï": "cøde", "long": strings.Repeat("x", 100_000)}
	got := launch(t, fakePlugin).status(policy)
	if !got.Ready || got.Count != 0 {
		t.Errorf("ready %v, count %d", got.Ready, got.Count)
	}
	for key, want := range policy {
		if got.Meta[key] != want {
			t.Errorf("%s: got %q", key, got.Meta[key])
		}
	}
}

func TestActionTravelsUnchanged(t *testing.T) {
	h := launch(t, fakePlugin)
	for _, action := range []sdk.ScalingAction{
		{Count: 7, Direction: sdk.ScaleDirectionUp, Reason: "scaling up because of ünïcode"},
		{Count: 0, Direction: sdk.ScaleDirectionDown},
		{Count: -1, Direction: sdk.ScaleDirectionNone, Meta: map[string]any{
			"nomad_autoscaler.dry_run": true, "nomad_autoscaler.dry_run.count": 3, "nomad_policy_id": "p-1"}},
	} {
		must(t, h.target.Scale(action, nil))
		meta := h.status(nil).Meta
		if meta["last_count"] != strconv.FormatInt(action.Count, 10) || meta["last_reason"] != action.Reason {
			t.Errorf("got %v, sent %+v", meta, action)
		}
		want := ""
		if action.Meta != nil {
			want = `{"nomad_autoscaler.dry_run":true,"nomad_autoscaler.dry_run.count":3,"nomad_policy_id":"p-1"}`
		}
		if meta["last_meta"] != want {
			t.Errorf("meta %q, want %q", meta["last_meta"], want)
		}
	}
}

func TestBusyIsANoOpToTheAgent(t *testing.T) {
	h := launch(t, fakePlugin)
	err := h.scale(map[string]string{"do": "fail", "code": "10", "message": "another Scale is open"})
	var noOp *sdk.TargetScalingNoOpError
	if !errors.As(err, &noOp) || err.Error() != "another Scale is open" {
		t.Errorf("error %#v", err)
	}
	// In replies of other calls the code would hide an error: they return INTERNAL.
	_, err = h.target.Status(map[string]string{"do": "fail", "code": "10"})
	if status.Code(err) != codes.Internal {
		t.Errorf("Status: %v", err)
	}
	if err := h.target.SetConfig(map[string]string{"do": "fail", "code": "10"}); status.Code(err) != codes.Internal {
		t.Errorf("SetConfig: %v", err)
	}
}

func TestEveryCodeArrives(t *testing.T) {
	h := launch(t, fakePlugin)
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want := code
		switch code {
		case codes.Aborted:
			continue // tested separately
		case codes.Unknown, codes.Unimplemented:
			want = codes.Internal
		}
		err := h.scale(map[string]string{"do": "fail", "code": strconv.Itoa(int(code)), "message": "why"})
		if status.Code(err) != want || status.Convert(err).Message() != "why" {
			t.Errorf("%v: got %v", code, err)
		}
	}
}

func TestP4NoErrorTextRestartsThePolicies(t *testing.T) {
	h := launch(t, fakePlugin)
	for _, text := range []string{
		"unexpected EOF", "GEOFENCE", "dial tcp 10.0.0.1:6443: connect: connection refused", "EOFEOF",
		"connection refused: EOF", "EEOFOF", strings.Repeat("EOF", 5000),
	} {
		for _, call := range []func(map[string]string) error{
			h.scale, h.target.SetConfig, func(script map[string]string) error {
				_, err := h.target.Status(script)
				return err
			},
		} {
			for _, what := range []string{"fail", "throw"} {
				err := call(map[string]string{"do": what, "message": text})
				if err == nil {
					t.Fatalf("%s: no error", text)
				}
				// What the agent searches for: hashicorp/nomad-autoscaler:policy/manager.go,
				// isUnrecoverableError.
				if strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "connection refused") {
					t.Errorf("%v", err)
				}
			}
		}
	}
}

func TestLongAndOddErrorTextsArrive(t *testing.T) {
	h := launch(t, fakePlugin)
	for _, text := range []string{
		strings.Repeat("one line a VM\n", 2000), strings.Repeat("ü", 100_000), "100% \x00\x01\x7f\r\n\t", "",
	} {
		err := h.scale(map[string]string{"do": "fail", "message": text})
		if status.Code(err) != codes.Internal {
			t.Errorf("%.20q: %v", text, err)
		}
		message := status.Convert(err).Message()
		if len(text) > 10_000 {
			if !strings.HasPrefix(text, message[:1000]) || !strings.Contains(message, "shortened") {
				t.Errorf("got %.40q", message)
			}
		} else if message != text {
			t.Errorf("got %q, want %q", message, text)
		}
	}
}

func TestP2ExceptionsAreErrorsOfTheirCall(t *testing.T) {
	h := launch(t, fakePlugin)
	for _, what := range []string{"throw", "throw-other"} {
		if err := h.scale(map[string]string{"do": what}); status.Code(err) != codes.Internal {
			t.Errorf("%s: %v", what, err)
		}
		if err := h.target.SetConfig(map[string]string{"do": what}); status.Code(err) != codes.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
	h.status(nil)
}

func TestStatusKnowsItsDeadline(t *testing.T) {
	h := launch(t, fakePlugin)
	if meta := h.status(nil).Meta; meta["remaining_ms"] != "" {
		t.Errorf("without a deadline: %v", meta)
	}
	meta := h.status(map[string]string{shared.PluginConfigKeyGRPCTimeout: "100s"}).Meta
	if left, err := strconv.Atoi(meta["remaining_ms"]); err != nil || left <= 0 || left >= 100_000 {
		t.Errorf("remaining %q", meta["remaining_ms"])
	}
}

// A Status that times out replies before the host's own timeout.
func TestStatusThatHangsEndsByItsOwnStatus(t *testing.T) {
	_, err := launch(t, fakePlugin).target.Status(
		map[string]string{"do": "block", shared.PluginConfigKeyGRPCTimeout: "2s"})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error %v", err)
	}
	if strings.Contains(status.Convert(err).Message(), "context deadline exceeded") {
		t.Errorf("the host gave up before the plugin answered: %v", err)
	}
}

func TestS3StatusAnswersWhileScalesRun(t *testing.T) {
	h := launch(t, fakePlugin)
	var scales []<-chan error
	for range 20 {
		scales = append(scales, h.scaleInBackground(map[string]string{"do": "block"}))
	}
	var all sync.WaitGroup
	for range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := h.target.Status(map[string]string{shared.PluginConfigKeyGRPCTimeout: "30s"}); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	for _, scale := range scales {
		select {
		case err := <-scale:
			t.Errorf("a Scale ended: %v", err)
		default:
		}
	}
}

func TestTooManyScalesAreRefusedAtOnce(t *testing.T) {
	h := launch(t, fakePlugin)
	done := make(chan error, 200)
	for range 200 {
		go func() { done <- h.scale(map[string]string{"do": "block"}) }()
	}
	// 64 run and 40 wait (src/plugin/dispatcher.h); the others return.
	for range 200 - 64 - 40 {
		if err := wait(t, "a Scale too many is refused", done); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("error %v", err)
		}
	}
	h.status(nil)
}
