// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// The high_availability block of examples/autoscaler.nomad.hcl, with shorter times.
const highAvailability = `
high_availability {
  enabled    = true
  lock_ttl   = "10s"
  lock_delay = "1s"
}
`

// Two agents of which Nomad's lock elects one, with the token of examples/nomad-acl.hcl: it has all
// that they ask for.
func TestTwoAgentsElectOneAndTheOtherTakesOverWhenItDies(t *testing.T) {
	s := harness.Start(t)
	rules, err := os.ReadFile(filepath.Join(harness.Root, "examples", "nomad-acl.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if s.PluginNomadToken, err = s.Nomad.NewToken("autoscaler", string(rules)); err != nil {
		t.Fatal(err)
	}
	s.AgentSettings = highAvailability
	active := s.StartAgent(t)
	standby := s.LaunchAgent(t, "other")

	s.Metrics.Want(2)
	s.AwaitSettled(t, 2*time.Minute, 2)
	if lines := standby.PluginLines(t); len(lines) != 0 {
		t.Errorf("the agent that stands by has a plugin, which says %v", lines[0])
	}
	active.KillBoth(t)

	s.Metrics.Want(3)
	s.AwaitSettled(t, 2*time.Minute, 3)
	s.Metrics.Want(0)
	s.AwaitSettled(t, 2*time.Minute, 0)
	standby.StopInOrder(t)
	log, err := os.ReadFile(standby.Log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		refused := strings.Contains(line, `"status":403`) && !strings.Contains(line, "list Nodes") // optional
		if refused || strings.Contains(line, "Permission denied") {
			t.Errorf("a right is missing: %s", line)
		}
	}
	checkJobs(t, s)
}

// checkJobs: Nomad takes the jobs of examples/.
func checkJobs(t *testing.T, s *harness.Stack) {
	t.Helper()
	for _, name := range []string{"autoscaler.nomad.hcl", "spread.nomad.hcl"} {
		out, err := s.Nomad.Command(t, filepath.Join(harness.Root, "examples"), "job", "validate", name)
		if err != nil || !strings.Contains(out, "successful") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
