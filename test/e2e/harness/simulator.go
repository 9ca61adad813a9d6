// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// Simulated is a simulated Harvester and Nomad, with a real agent whose pools are there.
type Simulated struct {
	Kube    *Kube
	Nomad   *Nomad
	Metrics *Metrics
	Agent   *Agent
}

// StartSimulated starts an agent, with its own defaults, for simulated pools. Each is made of the policy of
// the image, with some of its texts replaced; its name is the query that tells its count.
func StartSimulated(t testing.TB, agentPart string, pools map[string]*strings.Replacer) *Simulated {
	t.Helper()
	harvester, nomad := StartSimulator(t)
	s := &Simulated{
		Kube: &Kube{URL: harvester, Token: "any", HTTP: http.DefaultClient}, Nomad: &Nomad{URL: nomad}, Metrics: startMetrics(t),
	}
	dir := temporaryDir(t)
	write := func(path, text string) {
		check(t, path, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		check(t, path, os.WriteFile(filepath.Join(dir, path), []byte(strings.ReplaceAll(text, "/etc/nomad-autoscaler", dir)), 0o600))
	}
	for pool, changes := range pools {
		s.Metrics.WantOf(pool, 0)
		policy := strings.NewReplacer(`"web"`, fmt.Sprintf("%q", pool), `"wanted"`, fmt.Sprintf("%q", pool)).Replace(imagePolicy)
		write("policies/"+pool+".hcl", changes.Replace(policy))
	}
	write("cloud-init.yaml", string(must[[]byte](t, "cloud-init.yaml")(os.ReadFile(filepath.Join(Root, "examples", "cloud-init.yaml")))))
	write("agent.hcl", strings.Replace(fmt.Sprintf(imageConfig, nomad, s.Metrics.URL, harvester), "/plugins", filepath.Join(dir, "plugins"), 1))
	write("overlay.hcl", fmt.Sprintf(agentOverlay, freePort(t)))
	for _, path := range []string{"plugins", "tmp"} {
		check(t, path, os.Mkdir(filepath.Join(dir, path), 0o700))
	}
	check(t, "plugins", os.Symlink(Plugin(t), filepath.Join(dir, "plugins", "harvester")))
	cmd := exec.Command(part(t, agentPart, "nomad-autoscaler"), "agent", "-config", filepath.Join(dir, "agent.hcl"), "-config", filepath.Join(dir, "overlay.hcl"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp")}
	s.Agent = &Agent{Process: start(t, dir, "nomad-autoscaler", cmd), dir: dir}
	return s
}

// VMs returns the virtual machines of a pool.
func (s *Simulated) VMs(pool string) ([]Object, error) {
	return s.Kube.List(VirtualMachines, "nomad", poolLabel+"="+pool)
}
