// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
)

// StartSimulator runs the simulated Harvester and Nomad (test/simulator/serve_main.cc) until the end of
// the test, and returns their URLs. Further arguments are the program's.
func StartSimulator(t testing.TB, arguments ...string) (harvester, nomad string) {
	t.Helper()
	program := os.Getenv("HARVESTER_SIMULATOR")
	if program == "" {
		t.Fatal("HARVESTER_SIMULATOR is not set: it names the simulator's program")
	}
	cmd := exec.Command(program, arguments...)
	cmd.Stderr = os.Stderr
	input := must[io.WriteCloser](t, "the simulator's input")(cmd.StdinPipe())
	output := must[io.ReadCloser](t, "the simulator's output")(cmd.StdoutPipe())
	check(t, "start the simulator", cmd.Start())
	t.Cleanup(func() {
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the simulator ended with %v", err)
		}
	})
	lines := bufio.NewScanner(output)
	for _, url := range []*string{&harvester, &nomad} {
		if !lines.Scan() {
			t.Fatalf("the simulator said nothing: %v", lines.Err())
		}
		*url = lines.Text()
	}
	return harvester, nomad
}
