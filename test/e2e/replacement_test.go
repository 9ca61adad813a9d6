// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// checkCountsSeen: the agent and those after it saw this count at each evaluation, and scaled nothing.
func checkCountsSeen(t *testing.T, first *harness.Agent, want int) {
	t.Helper()
	seen := 0
	for _, line := range first.NewLines(t) {
		if strings.Contains(line, "calculating new count") {
			seen++
			if !strings.Contains(line, fmt.Sprintf(`"current count":%d`, want)) {
				t.Errorf("the agent saw another count than %d: %s", want, line)
			}
		}
		if strings.Contains(line, "successfully submitted scaling action") {
			t.Errorf("the agent has scaled: %s", line)
		}
	}
	if seen == 0 {
		t.Error("the agent has evaluated nothing")
	}
}

// Guests of a new image hang before they start Nomad: one new VM is lost, no old one is touched, and the roll-out rests
// until an operator lets it go on (rules R1 and R5).
func TestARollOutOfABrokenImageStopsAtItsFirstVM(t *testing.T) {
	const vms = 3
	s := harness.Start(t)
	s.JoinTimeout = joinsOnABusyMachine
	s.PolicyKeys = map[string]string{"replace_drifted": "rolling", "max_surge": "3"}
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, vms)
	agent.StopInOrder(t)

	t.Log("a broken image")
	s.PolicyKeys["image"], s.PolicyKeys["disk_size"] = "default/"+importImage(t, s, "backingimage"), "10Gi"
	s.Fail(harness.Faults{HungGuests: true})
	agent = s.StartAgent(t)
	roll := askToReplaceAll(t, s)
	awaitNewLine(t, agent, "Replacement is blocked", "it has stopped, because VM ", " was not ready in time: ")
	roll.lookFor(80 * time.Second) // for longer than the back-off of a first failure
	if made, old := vmsMade(s), roll.left(); made != vms+1 || old != vms || roll.least != vms {
		t.Errorf("%d VMs were made, %d old ones are left, and %d nodes were eligible, want %d, %d and %d",
			made, old, roll.least, vms+1, vms, vms)
	}
	if err := untouched(s); err != nil {
		t.Error(err)
	}
	out, _ := s.Command(t, "status")
	for _, text := range []string{"Count:      3\n", "Trouble:    the replacement of VMs has stopped, because VM ", " was not ready in time: "} {
		if !strings.Contains(out, text) {
			t.Errorf("harvester status lacks %q:\n%s", text, out)
		}
	}

	t.Log("the guests start")
	s.Fail(harness.Faults{})
	if out, code := s.Command(t, "resume", "--replacement"); code != 0 {
		t.Fatalf("harvester resume --replacement ended with %d: %s", code, out)
	}
	harness.Eventually(t, 5*time.Minute, "all are replaced", roll.isOver)
	s.AwaitSettled(t, time.Minute, vms)
	if made := vmsMade(s); made != 2*vms+1 || roll.least < vms {
		t.Errorf("%d VMs were made, and %d nodes were eligible, want %d and %d", made, roll.least, 2*vms+1, vms)
	}
	s.Reach(t, 2*time.Minute, 0)
	checkRequests(t, s)
}

// serve runs a service with one allocation on each of so many nodes.
func serve(t *testing.T, s *harness.Stack, nodes int) {
	t.Helper()
	service := serviceJob()
	service["TaskGroups"].([]harness.Object)[0]["Count"] = nodes
	s.Nomad.Run(t, service)
	awaitRuns(t, s, "web", nodes)
}

// rollOut is what is seen of a pool while its VMs are replaced.
type rollOut struct {
	stack   *harness.Stack
	present []string // the states of nodes that are not missing

	old, now map[string]bool // uids of VMs: before, and at the last look
	seen     map[string]bool // and at any
	least    int             // eligible nodes
	wanted   int             // VMs, once it is over
}

// askToReplaceAll asks for each of the pool's VMs by the annotation.
func askToReplaceAll(t *testing.T, s *harness.Stack) *rollOut {
	t.Helper()
	roll := &rollOut{stack: s, present: []string{"ready"}, seen: map[string]bool{}}
	must(t, roll.look())
	roll.old, roll.least, roll.wanted = roll.now, len(roll.now), len(roll.now)
	change := harness.Object{"metadata": harness.Object{"annotations": harness.Object{"nomad-harvester-autoscaler/replace": "e2e"}}}
	for _, vm := range s.VMs(t) {
		must1(s.Kube.Patch(harness.VirtualMachines, s.Namespace, vm.Name(), change))(t)
	}
	return roll
}

// look takes note of the VMs and of the eligible nodes.
func (r *rollOut) look() error {
	eligible, err := eligibleNodes(r.stack, r.present...)
	if err != nil {
		return err
	}
	r.least = min(r.least, eligible)
	vms, err := r.stack.Kube.List(harness.VirtualMachines, r.stack.Namespace, "")
	if err != nil {
		return err
	}
	r.now = map[string]bool{}
	for _, vm := range vms {
		r.now[vm.UID()], r.seen[vm.UID()] = true, true
	}
	return nil
}

// lookFor looks again and again, also while one of the systems does not answer.
func (r *rollOut) lookFor(duration time.Duration) {
	for until := time.Now().Add(duration); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		_ = r.look()
	}
}

// left returns how many of the old VMs there were at the last look.
func (r *rollOut) left() (old int) {
	for uid := range r.old {
		if r.now[uid] {
			old++
		}
	}
	return old
}

// isOver looks, and returns nil once no old VM is left, and there are as many as are wanted.
func (r *rollOut) isOver() error {
	if err := r.look(); err != nil {
		return err
	}
	if old := r.left(); old > 0 || len(r.now) != r.wanted {
		return fmt.Errorf("%d old VMs, %d in all", old, len(r.now))
	}
	return nil
}

// check: one new VM was made for each old one, and each was there before its old one went.
func (r *rollOut) check(t *testing.T) {
	t.Helper()
	if len(r.seen) != 2*len(r.old) {
		t.Errorf("there were %d VMs in all, want %d", len(r.seen), 2*len(r.old))
	}
	if r.least < len(r.old) {
		t.Errorf("there were %d eligible nodes at one moment, want %d at each", r.least, len(r.old))
	}
}

func eligibleNodes(s *harness.Stack, present ...string) (int, error) {
	nodes, err := s.Nomad.List("/v1/nodes")
	if err != nil {
		return 0, err
	}
	eligible := 0
	for _, node := range nodes {
		if slices.Contains(present, node.Str("Status")) && node.Str("SchedulingEligibility") == "eligible" {
			eligible++
		}
	}
	return eligible, nil
}
