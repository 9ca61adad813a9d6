// SPDX-License-Identifier: Apache-2.0

// A VM is delivered once its Nomad node is ready (rule C17).

package e2e

import (
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestAVMIsDeliveredOnceItsNodeIsReady(t *testing.T) {
	s := harness.Start(t)
	s.JoinTimeout = 40 * time.Second

	t.Log("no client has this driver: the VM is drained and removed after its join_timeout")
	s.PolicyKeys = map[string]string{"ready_drivers": "mock_driver,podman"}
	agent := s.StartAgent(t)
	departures := watchDepartures(s)
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "The node of a new VM has registered")
	awaitLine(t, agent.Log, `"@level":"error"`, "it was not ready by its deadline", "its driver podman is not detected")
	s.Metrics.Want(0)
	s.AwaitSettled(t, time.Minute, 0)
	departures.check(t, 1)
	agent.StopInOrder(t)

	t.Log("every client has this one, and is ready with its first heartbeat")
	s.PolicyKeys["ready_drivers"] = "mock_driver"
	agent = s.StartAgent(t)
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "A new VM is ready")
	s.AwaitSettled(t, time.Minute, 1)
	for _, vm := range s.VMs(t) {
		if at := vm.Annotation("nomad-harvester-autoscaler/ready-at"); at == "" || at == "not-yet" {
			t.Errorf("VM %s is ready at %q", vm.Name(), at)
		}
	}
	s.Metrics.Want(0)
	s.AwaitSettled(t, time.Minute, 0)

	checkRequests(t, s)
}
