// SPDX-License-Identifier: Apache-2.0

// A VM is delivered once its Nomad node is ready (rule C17).

package e2e

import (
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Longer than a client takes to register, and Nomad to see that it is down, beside seven other tests and a compiler.
const joinsOnABusyMachine = 90 * time.Second

func TestAVMIsDeliveredOnceItsNodeIsReady(t *testing.T) {
	s := harness.Start(t)
	s.JoinTimeout = joinsOnABusyMachine

	t.Log("no client has this driver: the VM is drained and removed after its join_timeout")
	s.PolicyKeys = map[string]string{"ready_drivers": "mock_driver,podman"}
	agent := s.StartAgent(t)
	departures := watchDepartures(s)
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "The node of a new VM has registered")
	awaitLine(t, agent.Log, failedCreation, "it was not ready by its deadline", "its driver podman is not detected")
	s.Reach(t, time.Minute, 0)
	departures.check(t, 1)
	agent.StopInOrder(t)

	t.Log("every client has this one, and is ready with its first heartbeat")
	s.PolicyKeys["ready_drivers"] = "mock_driver"
	agent = s.StartAgent(t)
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "A new VM is ready")
	s.AwaitSettled(t, time.Minute, 1)
	for _, vm := range s.VMs(t) {
		if !harness.WasReady(vm) {
			t.Errorf("VM %s was not recorded as ready: %v", vm.Name(), vm.At("metadata", "annotations"))
		}
	}
	s.Reach(t, time.Minute, 0)

	checkRequests(t, s)
}

// A real client is ready moments after it registers; this one lacks a driver, and hangs before it is ready.
func TestAClientThatHangsBeforeItIsReadyCostsItsVMAlone(t *testing.T) {
	s := harness.Start(t)
	s.JoinTimeout = joinsOnABusyMachine
	s.PolicyKeys = map[string]string{"ready_drivers": "mock_driver,podman"}
	agent := s.StartAgent(t)
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "The node of a new VM has registered")
	must(t, s.Machines.Running()[0].Suspend())
	awaitLine(t, agent.Log, failedCreation, "it was not ready by its deadline", "it is down")
	s.Metrics.Want(0)
	// Whether a node that is down runs tasks, nobody can tell: its VM is kept for two more minutes.
	harness.Eventually(t, 4*time.Minute, "nothing is left of the VM", func() error {
		return noneLeft(s, harness.VirtualMachines, harness.Instances, harness.Claims, harness.Secrets)
	})
	// No drain of it was completed: it is Nomad's to collect (rule C4).
	nodes, err := s.Nomad.List("/v1/nodes")
	if err != nil || len(nodes) != 1 || nodes[0].Str("Status") != "down" {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	checkRequests(t, s)
}
