package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"
)

// Agent is the Nomad Autoscaler with our plugin and one policy.
type Agent struct {
	*Process
	dir string
	env []string
}

// AgentFiles are the texts of the agent's and the policy's configuration and of
// the machines' user data; values of the running stack stand in them as
// {{.Name}}, between [[ and ]], because user data is a template of its own.
type AgentFiles struct{ Agent, Policy, UserData string }

// DefaultAgentFiles are those of the test's data.
func DefaultAgentFiles() AgentFiles {
	return AgentFiles{testdata("agent.hcl"), testdata("policy.hcl"), testdata("cloud-init.yaml")}
}

// StartAgent runs the agent from now on. It may be called again once the agent
// was killed; the log goes on in the same file.
func (s *Stack) StartAgent(t testing.TB, files AgentFiles) *Agent {
	t.Helper()
	dir := filepath.Join(s.Dir, "agent")
	plugins, policies, temporary := filepath.Join(dir, "plugins"), filepath.Join(dir, "policies"), filepath.Join(dir, "tmp")
	for _, path := range []string{plugins, policies, temporary} {
		check(t, path, os.MkdirAll(path, 0o700))
	}
	link := filepath.Join(plugins, "harvester")
	if _, err := os.Lstat(link); err != nil {
		check(t, link, os.Symlink(Plugin(t), link))
	}
	userData := filepath.Join(dir, "cloud-init.yaml")
	values := map[string]any{
		"PluginDir": plugins, "PolicyDir": policies, "UserDataFile": userData,
		"AgentPort": freePort(t, loopback), "NomadURL": s.Nomad.URL, "NomadToken": s.PluginNomadToken,
		"MetricsURL": s.Metrics.URL, "HarvesterURL": s.FrontDoor.URL, "HarvesterCA": s.Certificates.CAFile,
		"HarvesterTokenFile": s.PluginTokenFile, "Namespace": Namespace,
	}
	config := filepath.Join(dir, "agent.hcl")
	render(t, files.Agent, config, values)
	render(t, files.Policy, filepath.Join(policies, "policy.hcl"), values)
	render(t, files.UserData, userData, values)

	cmd := exec.Command(part(t, "agent", "nomad-autoscaler"), "agent", "-config", config)
	// Nothing of this shell's: a NOMAD_TOKEN or HARVESTER_TOKEN would win.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + temporary}
	agent := &Agent{Process: start(t, s.Dir, "nomad-autoscaler", cmd), dir: dir}
	Eventually(t, 30*time.Second, "the agent has launched the plugin", func() error {
		if !agent.Running() {
			return fmt.Errorf("the agent has ended:\n%s", tail(agent.Log, 20))
		}
		_, err := agent.plugin()
		return err
	})
	return agent
}

func (a *Agent) plugin() (int, error) {
	pids, err := a.Children("harvester")
	if err == nil && len(pids) != 1 {
		err = fmt.Errorf("%d processes of the plugin", len(pids))
	}
	if err != nil {
		return 0, err
	}
	return pids[0], nil
}

// KillBoth ends plugin and agent as a power cut does.
func (a *Agent) KillBoth(t testing.TB) {
	t.Helper()
	plugin := must[int](t, "the plugin's process")(a.plugin())
	check(t, "kill the plugin", syscall.Kill(plugin, syscall.SIGKILL))
	a.Kill()
	Eventually(t, 10*time.Second, "the plugin is gone", func() error {
		if err := syscall.Kill(plugin, 0); err != syscall.ESRCH {
			return fmt.Errorf("process %d: %v", plugin, err)
		}
		return nil
	})
}

// StopInOrder ends the agent by a signal and reports what the plugin left in its
// temporary directory.
func (a *Agent) StopInOrder(t testing.TB) []string {
	t.Helper()
	plugin := must[int](t, "the plugin's process")(a.plugin())
	a.Stop(20 * time.Second)
	Eventually(t, 5*time.Second, "the plugin is gone", func() error {
		if err := syscall.Kill(plugin, 0); err != syscall.ESRCH {
			return fmt.Errorf("process %d: %v", plugin, err)
		}
		return nil
	})
	return must[[]string](t, "temporary directory")(filepath.Glob(filepath.Join(a.dir, "tmp", "*")))
}

// PluginLines returns the agent's log entries that came from the plugin.
func (a *Agent) PluginLines(t testing.TB) []Object {
	t.Helper()
	data := must[[]byte](t, "the agent's log")(os.ReadFile(a.Log))
	var lines []Object
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line, err := decodeObject(scanner.Bytes())
		if err == nil && strings.Contains(line.Str("@module"), "harvester") {
			lines = append(lines, line)
		}
	}
	check(t, "the agent's log", scanner.Err())
	return lines
}

func render(t testing.TB, from, to string, values any) {
	t.Helper()
	text := must[[]byte](t, from)(os.ReadFile(from))
	parsed := must[*template.Template](t, from)(template.New(filepath.Base(from)).Delims("[[", "]]").Option("missingkey=error").Parse(string(text)))
	var out bytes.Buffer
	check(t, from, parsed.Execute(&out, values))
	check(t, to, os.WriteFile(to, out.Bytes(), 0o600))
}
