// SPDX-License-Identifier: Apache-2.0

// Nomad servers and clients without Kubernetes.

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/fidelity"
	"nomad-harvester.local/test/e2e/harness"
)

const introducedName = "clients-x7k2p"

// tokenFile is where a client of Nomad 1.11 has its introduction token
// (hashicorp/nomad:command/agent/agent.go, readIntroTokenFile).
const tokenFile = "/opt/nomad/data/client/intro_token.jwt"

// machineFiles are the files of a machine's cloud-init.
func machineFiles(more map[string]string) map[string]string {
	files := map[string]string{"/etc/nomad.d/nomad.hcl": fmt.Sprintf(`
server {
  enabled = false
}
client {
  enabled = true
  meta {
    harvester_vm_uuid = %q
  }
}
`, harness.SampleUID)}
	for path, content := range more {
		files[path] = content
	}
	return files
}

func boot(t *testing.T, s *harness.Stack, name string, files map[string]string) *harness.Machine {
	t.Helper()
	machine := must1(s.Machines.Boot(name, name, machineFiles(files)))(t)
	return machine
}

func awaitReady(t *testing.T, s *harness.Stack, name string) harness.Object {
	t.Helper()
	var found harness.Object
	harness.Eventually(t, 2*time.Minute, name+" is ready", func() error {
		node, err := s.Nomad.Node(name)
		if err == nil && node.Str("Status") != "ready" {
			err = fmt.Errorf("node %s is %q", name, node.Str("Status"))
		}
		found = node
		return err
	})
	return found
}

// awaitLine waits for a line of a log that has all the words.
func awaitLine(t *testing.T, log string, words ...string) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, fmt.Sprintf("%s says %q", filepath.Base(log), words), func() error {
		data, err := os.ReadFile(log)
		if err != nil {
			return err
		}
	lines:
		for line := range strings.Lines(string(data)) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue lines
				}
			}
			return nil
		}
		return fmt.Errorf("it does not")
	})
}

// nodeState is what the steps of the tables need to know.
func nodeState(t *testing.T, s *harness.Stack) map[string]string {
	t.Helper()
	state := map[string]string{"name": introducedName}
	for _, access := range []string{"read", "write"} {
		token := must1(s.Nomad.NewToken(access, fmt.Sprintf(`node { policy = %q }`, access)))(t)
		state[access+"Token"] = token
	}
	return state
}

func askNomad(t *testing.T, s *harness.Stack, state map[string]string, steps []fidelity.Step) []fidelity.Answer {
	t.Helper()
	target := fidelity.Target{NomadURL: s.Nomad.URL, NomadToken: s.Nomad.Token, HTTP: http.DefaultClient}
	answers := must1(fidelity.Ask(target, state, steps))(t)
	return answers
}

const recorded = "testdata/nomad-1.11-introduction-answers.json"

func compareRecorded(t *testing.T, answers []fidelity.Answer) {
	t.Helper()
	known := must1(fidelity.ReadAnswers(recorded))(t)
	for _, difference := range fidelity.Differences(known, answers, true) {
		t.Error(difference)
	}
}
