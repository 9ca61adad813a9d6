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

// A client registers as initializing, and is ready with its first heartbeat, within ten seconds at random
// (hashicorp/nomad:client/client.go, registerAndHeartbeat). This one hangs between the two.
func TestAClientThatHangsBeforeItIsReadyCostsItsVMAlone(t *testing.T) {
	s := harness.Start(t)
	s.JoinTimeout = 40 * time.Second
	agent := s.StartAgent(t)
	departures := watchDepartures(s)
	s.Metrics.Want(1)
	status := suspendAsItRegisters(t, s)
	if status != "initializing" {
		t.Fatalf("its node was %s before it hung", status)
	}
	awaitLine(t, agent.Log, "The node of a new VM has registered")
	awaitLine(t, agent.Log, `"@level":"error"`, "it was not ready by its deadline", "registered at")
	s.Metrics.Want(0)
	s.AwaitSettled(t, 4*time.Minute, 0)
	departures.check(t, 1)

	t.Log("the next one is delivered")
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "A new VM is ready")
	s.AwaitSettled(t, 2*time.Minute, 1)
	s.Metrics.Want(0)
	s.AwaitSettled(t, time.Minute, 0)
	checkRequests(t, s)
}

// suspendAsItRegisters stops the first machine as soon as Nomad knows its node, and returns the node's status.
func suspendAsItRegisters(t *testing.T, s *harness.Stack) string {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		nodes, err := s.Nomad.List("/v1/nodes")
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes) == 0 {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for _, machine := range s.Machines.Running() {
			if err := machine.Suspend(); err != nil {
				t.Fatal(err)
			}
		}
		node, err := s.Nomad.Get("/v1/node/" + nodes[0].Str("ID"))
		if err != nil {
			t.Fatal(err)
		}
		return node.Str("Status")
	}
	t.Fatal("no node registers")
	return ""
}
