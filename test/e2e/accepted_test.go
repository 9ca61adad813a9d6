// SPDX-License-Identifier: Apache-2.0

// What the agent makes of a Scale that is accepted (rule C16).

package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestC16_eleven_pools_that_boot_and_drain_leave_the_agent_a_slot_for_the_twelfth(t *testing.T) {
	checkSlots(t, "agent")
}

// The agent's slots for policies of clusters are ten (policy_eval, workers): VMs that never become ready and drains that
// do not end would take all of them if a Scale waited.
func checkSlots(t *testing.T, agentPart string) {
	t.Helper()
	t.Parallel()
	const booting, draining, interval = 6, 5, 5 * time.Second
	pool := func(key string) *strings.Replacer {
		return strings.NewReplacer("\"1s\"\n    check", fmt.Sprintf("%q\n    check", interval), "user_data_file ", key+"\n      user_data_file ")
	}
	// No client has this driver.
	never, waits := pool(`ready_drivers = "podman"`), pool(`node_drain_deadline = "1h"`)
	pools := map[string]*strings.Replacer{"twelfth": waits}
	for i := range booting {
		pools[fmt.Sprintf("boots-%d", i)] = never
	}
	for i := range draining {
		pools[fmt.Sprintf("drains-%d", i)] = waits
	}
	s := harness.StartSimulated(t, agentPart, pools)
	want := func(kind string, pools, count int) {
		for i := range pools {
			s.Metrics.WantOf(fmt.Sprintf("%s-%d", kind, i), count)
		}
	}

	want("drains", draining, 1)
	nodes := awaitSimulated(t, s, "a node of each pool that is to drain is ready", draining, func(node harness.Object) bool {
		return node.Str("Status") == "ready"
	})
	for _, node := range nodes {
		s.Nomad.Run(t, job("batch-"+node.Str("Name"), "batch", harness.Object{
			"Count":       1,
			"Constraints": []harness.Object{{"LTarget": "${node.unique.name}", "RTarget": node.Str("Name"), "Operand": "="}},
			"Tasks":       []harness.Object{task("work", harness.Object{"run_for": "24h"})},
		}))
	}
	harness.Eventually(t, time.Minute, "each of these nodes has work", func() error {
		allocations, err := s.Nomad.List("/v1/allocations")
		running := 0
		for _, allocation := range allocations {
			if allocation.Str("ClientStatus") == "running" {
				running++
			}
		}
		if err == nil && running != draining {
			err = fmt.Errorf("%d allocations run", running)
		}
		return err
	})

	want("drains", draining, 0)
	want("boots", booting, 1)
	drain := func(node harness.Object) bool { return node.Bool("Drain") }
	awaitSimulated(t, s, "these nodes drain", draining, drain)
	harness.Eventually(t, time.Minute, "eleven pools are under way", func() error { return eachHasOne(s, "boots", booting) })

	s.Metrics.WantOf("twelfth", 1)
	harness.Eventually(t, 2*interval, "the twelfth pool grows within two evaluations", func() error {
		vms, err := s.VMs("twelfth")
		if err == nil && len(vms) == 0 {
			err = errors.New("it has no VM")
		}
		return err
	})
	harness.Eventually(t, time.Minute, "its VM is ready", func() error {
		vms, err := s.VMs("twelfth")
		if err == nil && !harness.WasReady(vms[0]) {
			err = errors.New("it is not")
		}
		return err
	})
	awaitSimulated(t, s, "the nodes drain still", draining, drain)
	if err := eachHasOne(s, "boots", booting); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(s.Agent.Log)
	if err != nil || strings.Contains(string(log), "timeout while waiting for slot") {
		t.Errorf("a policy has waited in vain for a slot: %v", err)
	}
}

// awaitSimulated waits until so many of the simulated nodes are as they should, and returns these.
func awaitSimulated(t *testing.T, s *harness.Simulated, what string, count int, is func(harness.Object) bool) (found []harness.Object) {
	t.Helper()
	harness.Eventually(t, time.Minute, what, func() error {
		nodes, err := s.Nomad.List("/v1/nodes")
		found = nil
		for _, node := range nodes {
			if is(node) {
				found = append(found, node)
			}
		}
		if err == nil && len(found) != count {
			err = fmt.Errorf("%d nodes of %d, want %d", len(found), len(nodes), count)
		}
		return err
	})
	return found
}

// eachHasOne returns nil if each pool of this kind has one VM, which was never ready.
func eachHasOne(s *harness.Simulated, kind string, pools int) error {
	for i := range pools {
		vms, err := s.VMs(fmt.Sprintf("%s-%d", kind, i))
		if err == nil && (len(vms) != 1 || harness.WasReady(vms[0])) {
			err = fmt.Errorf("pool %s-%d has %d VMs, want one that is not ready", kind, i, len(vms))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestC16_a_growth_is_over_once_its_VM_is_ready_and_its_cooldown_has_passed(t *testing.T) {
	checkCooldown(t, "agent", false)
}

// Until a VM is ready the pool is not, and the agent scales nothing. The agent counts its cooldown from the acceptance;
// 0.4.6 also from `last_event` (rule S4), which 0.5.0 reads only when it starts.
func checkCooldown(t *testing.T, agentPart string, sinceReady bool) {
	t.Helper()
	t.Parallel()
	const pool, cooldown = "pool", 8 * time.Second
	s := harness.StartSimulated(t, agentPart, map[string]*strings.Replacer{
		pool: strings.NewReplacer(`= "1s"`+"\n    evaluation", fmt.Sprintf("= %q\n    evaluation", cooldown)),
	})
	grow := func(count int) harness.Object {
		var vms []harness.Object
		s.Metrics.WantOf(pool, count)
		harness.Eventually(t, time.Minute, fmt.Sprintf("the pool has %d VMs", count), func() (err error) {
			if vms, err = s.VMs(pool); err == nil && len(vms) != count {
				err = fmt.Errorf("it has %d", len(vms))
			}
			return err
		})
		return slices.MaxFunc(vms, func(a, b harness.Object) int { return madeAt(t, a).Compare(madeAt(t, b)) })
	}
	first := grow(1)
	second := grow(2)
	first, err := s.Kube.Get(harness.VirtualMachines, "nomad", first.Name())
	if err != nil || !harness.WasReady(first) {
		t.Fatalf("the agent has scaled before the VM was ready: %v, %v", err, first.At("metadata", "annotations"))
	}
	since := madeAt(t, first)
	if sinceReady {
		since = at(t, first.Annotation("nomad-harvester-autoscaler/ready-at"))
	}
	// Times of the API server have whole seconds.
	if waited := madeAt(t, second).Sub(since); waited < cooldown-time.Second {
		t.Errorf("the agent scaled after %v, before the cooldown of %v was over", waited, cooldown)
	}
}

func madeAt(t *testing.T, object harness.Object) time.Time {
	t.Helper()
	return at(t, object.Str("metadata", "creationTimestamp"))
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	return must1(time.Parse(time.RFC3339, text))(t)
}
