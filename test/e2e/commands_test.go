// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nomad-harvester.local/test/e2e/harness"
)

// useCommands uses the executable's commands beside the agent, on a pool of three
// VMs, as an operator would: the policy is found by the agent's policy.dir.
func useCommands(t *testing.T, s *harness.Stack) {
	t.Helper()
	for _, use := range []struct {
		arguments []string
		code      int
		texts     []string
		not       string
	}{
		{[]string{"check"}, 0, []string{"ok       dry run of a VM: ", "ok       node:write: granted", "before 1.11.3 system jobs"}, "FAIL"},
		{[]string{"status"}, 0, []string{"Ready:      yes\n", "Count:      3\n", "Policy:     "}, "Trouble:"},
		{[]string{"status", "-o", "wide"}, 0, []string{"HARVESTER", "linked"}, "Trouble:"},
		{[]string{"plan", "--count", "1"}, 0, []string{"3 → 1, scale in by ", "\nREMOVE\n", "nothing would refuse it\n"}, "CREATE"},
		{[]string{"plan", "--count", "4"}, 0, []string{"3 → 4, scale out", "\nCREATE\n", "nothing would refuse it\n"}, "REMOVE"},
		{[]string{"render"}, 0, []string{"kind: Lease\n", "kind: Secret\n", "kind: VirtualMachine\n"}, s.PluginNomadToken},
		{[]string{"pause"}, 0, []string{" is paused until nomad-harvester resume\n"}, "harvester pause:"},
		{[]string{"status"}, 3, []string{"Ready:      no: pool ", " is paused"}, "Ready:      yes"},
		{[]string{"scale", "--count", "4"}, 1, []string{"3 → 4, scale out", "harvester scale: pool "}, "accepted"},
		{[]string{"resume"}, 0, []string{" resumed\n"}, "harvester resume:"},
		{[]string{"scale", "--count", "1"}, 2, []string{"it would remove 2 VMs, and there is no terminal to ask on: give --yes\n"}, "accepted"},
		{[]string{"gc", "--dry-run", "--set", "namespace=" + s.Namespace}, 0, []string{": nothing to do\n"}, "would"},
	} {
		out, code := s.Command(t, use.arguments[0], use.arguments[1:]...)
		for _, text := range use.texts {
			if !strings.Contains(out, text) {
				t.Errorf("harvester %v lacks %q:\n%s", use.arguments, text, out)
			}
		}
		if code != use.code || strings.Contains(out, use.not) {
			t.Errorf("harvester %v: exit code %d, want %d, without %q:\n%s", use.arguments, code, use.code, use.not, out)
		}
	}
	checkHosts(t, s)
}

// checkHosts: status knows on which hosts the VMs run, and the story of each.
func checkHosts(t *testing.T, s *harness.Stack) {
	t.Helper()
	out, _ := s.Command(t, "status", "--output", "json")
	var document struct {
		VMs []struct{ Name, Host string } `json:"vms"`
	}
	// Before the document it may have said on stderr what it waited for.
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &document); err != nil {
		t.Fatalf("harvester status --output json: %v\n%s", err, out)
	}
	if len(document.VMs) != 3 {
		t.Errorf("status has %d VMs, want 3", len(document.VMs))
	}
	for _, vm := range document.VMs {
		story, code := s.Command(t, "status", vm.Name)
		lines := strings.Split(story, "\n")
		if code != 0 || vm.Host == "" || !slices.Contains(lines, "Host:       "+vm.Host) {
			t.Errorf("the story of %s on host %q ended with %d:\n%s", vm.Name, vm.Host, code, story)
		}
		if strings.Contains(story, "Events:     the") {
			t.Errorf("the Events of %s were not listed:\n%s", vm.Name, story)
		}
	}
}
