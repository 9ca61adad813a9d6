// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"testing"

	"nomad-harvester.local/test/e2e/fidelity"
	"nomad-harvester.local/test/e2e/harness"
)

var update = flag.Bool("update", false, "write the real servers' answers down anew")

// Checks the assumptions of code and simulator against the real servers.
func TestRealServersStillAnswerAsWrittenDown(t *testing.T) {
	s := harness.Start(t)
	answers, err := fidelity.AskAll(fidelity.Target{
		KubeURL: s.Kube.URL, KubeToken: s.Kube.Token, NomadURL: s.Nomad.URL, NomadToken: s.Nomad.Token,
		Namespace: s.Namespace, HTTP: s.Kube.HTTP,
		ForbiddenToken: s.PluginKube.Token, Compact: s.Compact, RunsJobs: true,
	})
	// Nomad's answers are kept of three releases; others are held to that of the one before them.
	release := "1.10"
	switch of := s.Nomad.Release(t); {
	case of.Before(harness.Release{Major: 1, Minor: 7}):
		release = "1.6"
	case !of.Before(introduces):
		release = "1.11"
	}
	harvesters, nomads := fidelity.HarvesterAnswers("testdata"), fidelity.NomadAnswers("testdata", release)
	if *update && (!harness.NewestHarvester() || release != "1.6") {
		t.Fatal("the answers are kept of the newest Harvester and of Nomad 1.6")
	}
	if *update {
		for path, api := range map[string]fidelity.API{harvesters: fidelity.Kube, nomads[0]: fidelity.Nomad} {
			if writeErr := fidelity.WriteAnswers(path, fidelity.Of(api, answers)); writeErr != nil {
				t.Fatal(writeErr)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := len(fidelity.Steps()); len(answers) != want {
		t.Errorf("%d answers, want %d", len(answers), want)
	}
	known := must1(fidelity.ReadAnswers(append(nomads, harvesters)...))(t)
	for _, difference := range fidelity.Differences(known, answers, harness.NewestHarvester()) {
		t.Error(difference)
	}
}
