// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Two agents with the same policy, neither of which stands by, and the token of examples/nomad-acl.hcl. The pool's
// Lease lets one of them act at a time; the other one goes on when that one dies.
func TestTwoAgentsActInTurnByThePoolsLease(t *testing.T) {
	s := harness.Start(t)
	useExampleToken(t, s)
	first := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 2)
	other := s.StartAgentAs(t, "other")
	s.Reach(t, 2*time.Minute, 3)
	first.KillBoth(t)
	checkNothingRefused(t, first)
	if made := vmsMade(s); made != 3 {
		t.Errorf("%d VMs were made, want 3", made)
	}

	s.Reach(t, 2*time.Minute, 1)
	s.Reach(t, 2*time.Minute, 0)
	other.StopInOrder(t)
	checkNothingRefused(t, other)
	checkJobs(t, s)
}

// vmsMade returns how many VMs the plugin has made.
func vmsMade(s *harness.Stack) (made int) {
	for _, request := range s.FrontDoor.Requests() {
		if request.Method == http.MethodPost && request.Code == http.StatusCreated &&
			request.Path == harness.VirtualMachines.Path(s.Namespace) && !strings.Contains(request.URL, "dryRun") {
			made++
		}
	}
	return made
}

func useExampleToken(t *testing.T, s *harness.Stack) {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(harness.Root, "examples", "nomad-acl.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if s.PluginNomadToken, err = s.Nomad.NewToken("autoscaler", string(rules)); err != nil {
		t.Fatal(err)
	}
}

// checkNothingRefused: the token and the Role have all rights that agent and plugin asked for.
func checkNothingRefused(t *testing.T, agent *harness.Agent) {
	t.Helper()
	log := must1(os.ReadFile(agent.Log))(t)
	for line := range strings.Lines(string(log)) {
		refused := strings.Contains(line, `"status":403`) && !strings.Contains(line, "list Nodes") // optional
		if refused || strings.Contains(line, "Permission denied") {
			t.Errorf("a right is missing: %s", line)
		}
	}
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
