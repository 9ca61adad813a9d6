// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
	"github.com/hashicorp/nomad-autoscaler/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What the RPC server itself may cost its callers. Its threads once had a timer slack of two
// seconds, for fewer wake-ups: a mutex of Abseil sleeps for 10 µs while it is contended, which
// became two seconds without any RPC, about once in the life of a process and at a random moment,
// also while it ended. One caller at a time never meets that: only calls at once contend.

const (
	liveClients = 8
	// The stall came early in the life of a process: several short lives find more than a long one.
	liveProcesses = 4
	liveDuration  = 2500 * time.Millisecond
	// Not a claim about speed: calls take some 10 ms, the stall took 2 s. Between them is room for a
	// machine that is busy with something else.
	noStall = time.Second

	endedProcesses = 10
)

func startLive(t *testing.T) (*slowAPI, *host) {
	t.Helper()
	cluster := clusterFor(t)
	harvester := newSlowAPI(t, cluster.harvester)
	h := launch(t, realPlugin)
	if err := h.target.SetConfig(map[string]string{"harvester_url": harvester.server.URL,
		"nomad_address": cluster.nomad, "auth_token": "any"}); err != nil {
		t.Fatal(err)
	}
	return harvester, h
}

func livePolicy(namespace string) map[string]string {
	return joiningPolicy("namespace", namespace, shared.PluginConfigKeyGRPCTimeout, statusLimit.String())
}

func TestS3_calls_of_Status_at_once_are_answered_without_a_stall(t *testing.T) {
	for process := range liveProcesses {
		t.Run(fmt.Sprint(process), func(t *testing.T) {
			_, h := startLive(t)
			end := time.Now().Add(liveDuration)
			forPools(0, liveClients, func(client int) {
				for time.Now().Before(end) {
					begin := time.Now()
					_, err := h.target.Status(livePolicy("nomad"))
					if took := time.Since(begin); err != nil || took > noStall {
						t.Errorf("client %d: Status took %v, error %v", client, took, err)
					}
				}
			})
		})
	}
}

// The processes get SIGTERM at different moments of the first third of a second in which calls are
// made at once.
func TestP1_P4_calls_under_way_at_SIGTERM_get_their_status_and_never_the_hosts_own_text(t *testing.T) {
	for process := range endedProcesses {
		t.Run(fmt.Sprint(process), func(t *testing.T) {
			harvester, h := startLive(t)
			harvester.path = "/namespaces/held-"
			harvester.takes.Store(int64(time.Minute))
			results := make(chan error, liveClients+1)
			holdCalls(t, harvester, h, results)
			busy := callStatusUntilItFails(h)

			<-time.After(time.Duration(process+1) * 30 * time.Millisecond)
			if early := len(results); early > 0 {
				t.Errorf("%d calls have ended already", early)
			}
			begin := time.Now()
			must(t, h.cmd.Process.Signal(syscall.SIGTERM))
			code := h.exitCode()
			if took := time.Since(begin); code != 0 || took > noStall {
				t.Errorf("exit code %d after %v\n%s", code, took, h.stderr)
			}
			for range liveClients + 1 {
				checkEndedByThePlugin(t, wait(t, "the call has ended", results))
			}
			busy.Wait()
		})
	}
}

// Returns when a Scale and each Status wait for Harvester: then the plugin has received them.
func holdCalls(t *testing.T, harvester *slowAPI, h *host, results chan<- error) {
	t.Helper()
	hold := func(namespace, asks string, call func(policy map[string]string) error) {
		go func() { results <- call(livePolicy(namespace)) }()
		waitUntil(t, "the call asks Harvester", func() bool {
			return harvester.asked("GET /apis/"+strings.Replace(asks, "NAMESPACE", namespace, 1)) > 0
		})
	}
	hold("held-scale", "coordination.k8s.io/v1/namespaces/NAMESPACE/leases/*", func(policy map[string]string) error {
		if err := h.target.Scale(sdk.ScalingAction{Count: 1, Reason: "live test"}, policy); err != nil {
			return err
		}
		return errors.New("the Scale succeeded")
	})
	for client := range liveClients {
		hold(fmt.Sprintf("held-%d", client), "kubevirt.io/v1/namespaces/NAMESPACE/virtualmachines", func(policy map[string]string) error {
			_, err := h.target.Status(policy)
			return err
		})
	}
}

// Calls that are answered at once, also while the process ends: load. Their own end is not judged,
// because nobody knows whether the plugin had received the last ones.
func callStatusUntilItFails(h *host) *sync.WaitGroup {
	var busy sync.WaitGroup
	for range liveClients {
		busy.Add(1)
		go func() {
			defer busy.Done()
			for {
				if _, err := h.target.Status(livePolicy("nomad")); err != nil {
					return
				}
			}
		}()
	}
	return &busy
}

// A Status whose list ended with the process may also be answered: it is not ready.
func checkEndedByThePlugin(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if status.Code(err) != codes.Canceled || !strings.Contains(err.Error(), "the process is ending") {
		t.Errorf("error %v", err)
	}
}
