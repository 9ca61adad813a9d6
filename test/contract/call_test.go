// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
	"github.com/hashicorp/nomad-autoscaler/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
