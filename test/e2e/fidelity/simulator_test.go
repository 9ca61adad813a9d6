// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Compares the simulator's responses with the recorded ones of the real servers.
// HARVESTER_SIMULATOR is the path of the program (test/simulator/serve_main.cc).
func TestTheSimulatorAnswersAsTheRealServersDo(t *testing.T) {
	target := Target{Namespace: "nomad", HTTP: &http.Client{Timeout: time.Minute}, RunsJobs: true}
	serve(t, &target.KubeURL, &target.NomadURL)
	answers, err := AskAll(target)
	if err != nil {
		t.Fatal(err)
	}
	known, err := ReadAnswers(filepath.Join("..", "testdata", "real-answers.json"))
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

// serve runs the simulator until the end of the test.
func serve(t *testing.T, urls ...*string) {
	t.Helper()
	program := os.Getenv("HARVESTER_SIMULATOR")
	if program == "" {
		t.Fatal("HARVESTER_SIMULATOR is not set: it names the simulator's program")
	}
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the simulator ended with %v", err)
		}
	})
	lines := bufio.NewScanner(output)
	for _, url := range urls {
		if !lines.Scan() {
			t.Fatalf("the simulator said nothing: %v", lines.Err())
		}
		*url = lines.Text()
	}
}
