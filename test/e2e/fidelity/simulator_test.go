// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Compares the simulator's responses with the recorded ones of the real servers.
func TestTheSimulatorAnswersAsTheRealServersDo(t *testing.T) {
	target := Target{Namespace: "nomad", HTTP: &http.Client{Timeout: time.Minute}, RunsJobs: true}
	target.KubeURL, target.NomadURL = harness.StartSimulator(t)
	answers, err := AskAll(target)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join("..", "testdata")
	known, err := ReadAnswers(append(NomadAnswers(data, "1.10"), HarvesterAnswers(data))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range Differences(known, answers, false) {
		t.Error(difference)
	}
	// Steps for features that it lacks: rights, and a history that can be compacted.
	const unasked = 5
	if want := len(known) - unasked; len(answers) != want {
		t.Errorf("%d answers, want %d", len(answers), want)
	}
}
