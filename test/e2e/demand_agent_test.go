// SPDX-License-Identifier: Apache-2.0

// The count that pending work needs, under the real agent (docs/demand.md).

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

const (
	demandBlock = `
apm "demand" {
  driver = "harvester"
  args   = ["apm"]
}
`
	demandCheck = `    check "nodes-needed" {
      source = "demand"
      query  = "nodes-needed node_class=batch node_pool=default datacenter=dc1 idle_for=10s"

      strategy "pass-through" {}
    }
`
	demandRules = `
node { policy = "write" }
namespace "*" { capabilities = ["read-job", "list-jobs"] }
`
)

func TestDemandTakesAPoolFromZeroToWhatTheWorkNeedsAndBack(t *testing.T) {
	s := harness.Start(t)
	token := must1(s.Nomad.NewToken("demand", demandRules))(t)
	s.PluginNomadToken, s.Check, s.AgentSettings = token, demandCheck, demandBlock
	agent := s.StartAgent(t)

	t.Log("one job, and one that no node can hold")
	impossible := job("elsewhere", "batch", harness.Object{
		"Count":       1,
		"Constraints": []harness.Object{{"LTarget": "${attr.kernel.name}", "RTarget": "plan9", "Operand": "="}},
		"Tasks":       []harness.Object{task("work", harness.Object{"run_for": "24h"})},
	})
	s.Nomad.Run(t, impossible)
	submitted := time.Now()
	s.Nomad.Run(t, job("first", "batch", harness.Object{
		"Count": 1,
		"Tasks": []harness.Object{task("work", harness.Object{"run_for": "24h"})},
	}))
	awaitVMs(t, s, 1)
	t.Logf("from the submission to the VM: %v", time.Since(submitted).Round(100*time.Millisecond))
	awaitRuns(t, s, "first", 1)

	t.Log("a burst of 40 allocations, of which a node holds sixteen beside the first job")
	nodes, err := s.Nomad.List("/v1/nodes?resources=true")
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes: %v", len(nodes), err)
	}
	memory := nodes[0].Int("NodeResources", "Memory", "MemoryMB") - nodes[0].Int("ReservedResources", "Memory", "MemoryMB")
	work := task("work", harness.Object{"run_for": "24h"})
	work["Resources"] = harness.Object{"CPU": 1, "MemoryMB": (memory - 20) / 16}
	s.Nomad.Run(t, job("burst", "batch", harness.Object{"Count": 40, "Tasks": []harness.Object{work}}))
	awaitRuns(t, s, "burst", 40)
	awaitMachines(t, s, 3)

	t.Log("the work ends")
	for _, id := range []string{"first", "burst", "elsewhere"} {
		if _, _, err := s.Nomad.Request("DELETE", "/v1/job/"+id, nil); err != nil {
			t.Fatal(err)
		}
	}
	awaitMachines(t, s, 0)
	if made := strings.Count(logOf(t, agent), "Creating a VM"); made != 3 {
		t.Errorf("%d VMs were made, want the 3 that the work needs", made)
	}
	agent.StopInOrder(t)
}

func logOf(t *testing.T, agent *harness.Agent) string {
	t.Helper()
	log := must1(os.ReadFile(agent.Log))(t)
	return string(log)
}

func awaitMachines(t *testing.T, s *harness.Stack, count int) {
	t.Helper()
	harness.Eventually(t, 4*time.Minute, fmt.Sprintf("%d machines and nothing else", count), func() error { return s.Settled(count) })
}

func awaitVMs(t *testing.T, s *harness.Stack, count int) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("%d VMs", count), func() error {
		if found := len(s.VMs(t)); found != count {
			return fmt.Errorf("%d VMs", found)
		}
		return nil
	})
}

func awaitRuns(t *testing.T, s *harness.Stack, id string, count int) {
	t.Helper()
	harness.Eventually(t, 3*time.Minute, fmt.Sprintf("%d allocations of %s run", count, id), func() error { return runs(s, id, count) })
}
