// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Five VMs are replaced one after the other while an agent watches how much of the nodes is used (rules R1 and R3). With
// six eligible nodes for a moment, that would be less than the target, and it would scale in. It asks for the metrics
// after the Status, so that it may see six: its Scale is then aborted.
func TestAPoolRenewsItsVMsAndItsAgentDoesNotNotice(t *testing.T) {
	const vms = 5
	s := harness.Start(t)
	agent := s.StartAgent(t)
	s.Reach(t, 3*time.Minute, vms)
	serve(t, s, vms)
	agent.StopInOrder(t)

	used := usedCPU(t, s)
	s.Check = fmt.Sprintf(`
    check "cpu" {
      source = "nomad-apm"
      query  = "percentage-allocated_cpu"
      strategy "target-value" {
        target    = %f
        threshold = 0.01
      }
    }
`, used/0.94)
	watcher := s.StartAgentAs(t, "watcher")
	awaitContent(t, watcher)
	roll := askToReplaceAll(t, s)
	harness.Eventually(t, 8*time.Minute, "all are replaced", roll.isOver)
	roll.check(t)
	harness.Eventually(t, time.Minute, "five nodes are left", func() error {
		nodes, err := s.Nomad.List("/v1/nodes")
		if err == nil && len(nodes) != vms {
			err = fmt.Errorf("there are %d", len(nodes))
		}
		return err
	})
	awaitRuns(t, s, "web", vms)
	checkCountsSeen(t, watcher, vms)
	checkRequests(t, s)
}

// Harvester's quota has room for two VMs, and for no third one (rule R8).
func TestAPoolWithoutRoomForOneMoreVMIsReplacedInTheRoomThatItHas(t *testing.T) {
	const vms = 2
	s := harness.Start(t)
	s.PolicyKeys = map[string]string{"max_unavailable": "1"}
	agent := s.StartAgent(t)
	s.Reach(t, 3*time.Minute, vms)
	setHarvestersQuota(t, s, "17Gi") // a VM's pod needs 8.4
	roll := askToReplaceAll(t, s)
	most := 0
	harness.Eventually(t, 8*time.Minute, "all are replaced", func() error {
		instances, err := s.Kube.List(harness.Instances, s.Namespace, "")
		if err != nil {
			return err
		}
		most = max(most, len(instances))
		return roll.isOver()
	})
	if most > vms || roll.least < vms-1 {
		t.Errorf("there were up to %d instances and down to %d eligible nodes, want %d and %d", most, roll.least, vms, vms-1)
	}
	s.AwaitSettled(t, 2*time.Minute, vms)
	for _, vm := range s.VMs(t) {
		if strategy := vm.Str("spec", "runStrategy"); strategy != "RerunOnFailure" {
			t.Errorf("%s has the run strategy %s", vm.Name(), strategy)
		}
	}
	if scalings := strings.Count(strings.Join(agent.NewLines(t), "\n"), "successfully submitted scaling action"); scalings != 1 {
		t.Errorf("the agent has scaled %d times, want once, to the first two", scalings)
	}
	checkRequests(t, s)
}

// Three VMs that must not share a host, on three hosts: none takes the new one until the pool shrinks (rule R5).
func TestARollOutWaitsForRoomAndGoesOnByItself(t *testing.T) {
	const vms = 3
	s := harness.Start(t)
	s.PolicyKeys = map[string]string{"host_spread": "required"}
	agent := s.StartAgent(t)
	s.Reach(t, 3*time.Minute, vms)
	roll := askToReplaceAll(t, s)
	awaitNewLine(t, agent, "Replacement is blocked", "there has been no room for a new VM since ", "anti-affinity")
	roll.lookFor(80 * time.Second) // for a second try
	if old := roll.left(); old != vms || roll.least != vms {
		t.Errorf("%d old VMs are left, and %d nodes were eligible, want %d", old, roll.least, vms)
	}
	if out, _ := s.Command(t, "status"); !strings.Contains(out, "there has been no room for a new VM since ") {
		t.Errorf("harvester status does not say what replacement waits for:\n%s", out)
	}

	t.Log("a host becomes free")
	s.Metrics.Want(vms - 1)
	roll.wanted = vms - 1
	harness.Eventually(t, 8*time.Minute, "all are replaced", roll.isOver)
	s.AwaitSettled(t, 2*time.Minute, vms-1)
	checkRequests(t, s)
}

// A program takes back what a machine has elsewhere once its node is empty, and lets its VM go then (rule C18).
func TestADrainedVMWaitsForTheProgramThatTakesBackWhatItHasElsewhere(t *testing.T) {
	const hold = "nomad-harvester-autoscaler/hold-vpn"
	s := harness.Start(t)
	s.PolicyKeys = map[string]string{"deletion_holds": "vpn"}
	s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 1)
	vm := s.VMs(t)[0].Name()
	s.Nomad.Run(t, serviceJob())
	awaitRuns(t, s, "web", 3)

	s.Metrics.Want(0)
	awaitNode(t, s, vm, func(node harness.Object) error {
		running, err := s.Nomad.RunningOn("web")
		if err != nil {
			return err
		}
		if node.Str("LastDrain", "Status") != "complete" || len(running) > 0 {
			return fmt.Errorf("its drain is %q, and %v runs", node.Str("LastDrain", "Status"), running)
		}
		return nil
	})
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(time.Second) {
		object, err := s.Kube.Get(harness.VirtualMachines, s.Namespace, vm)
		if err != nil || object.Str("metadata", "deletionTimestamp") != "" {
			t.Fatalf("%s is deleted while it is held: %v", vm, err)
		}
	}
	change := harness.Object{"metadata": harness.Object{"annotations": harness.Object{hold: nil}}}
	must1(s.Kube.Patch(harness.VirtualMachines, s.Namespace, vm, change))(t)
	s.AwaitSettled(t, time.Minute, 0)
	checkRequests(t, s)
}

// awaitContent waits until the agent has found that the count is right.
func awaitContent(t *testing.T, agent *harness.Agent) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the agent is content", func() error {
		if !strings.Contains(strings.Join(agent.NewLines(t), "\n"), "no action needed") {
			return errors.New("it has not evaluated yet")
		}
		return nil
	})
}

func runs(s *harness.Stack, job string, count int) error {
	running, err := s.Nomad.RunningOn(job)
	if err != nil {
		return err
	}
	total := 0
	for _, here := range running {
		total += here
	}
	if total != count {
		return fmt.Errorf("%d allocations run, want %d", total, count)
	}
	return nil
}

// usedCPU returns how much of the CPU of all nodes is allocated, in percent.
func usedCPU(t *testing.T, s *harness.Stack) float64 {
	t.Helper()
	nodes := must1(s.Nomad.List("/v1/nodes?resources=true"))(t)
	var used, all int64
	for _, node := range nodes {
		all += node.Int("NodeResources", "Cpu", "CpuShares")
	}
	allocations := must1(s.Nomad.List("/v1/allocations?resources=true&namespace=*"))(t)
	for _, allocation := range allocations {
		for name := range allocation.Obj("AllocatedResources", "Tasks") {
			used += allocation.Int("AllocatedResources", "Tasks", name, "Cpu", "CpuShares")
		}
	}
	if used == 0 || all == 0 {
		t.Fatalf("%d of %d MHz are allocated", used, all)
	}
	return 100 * float64(used) / float64(all)
}
