// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Agent is the Nomad Autoscaler with our plugin and one policy.
type Agent struct {
	*Process
	dir string
	old int // where in its log it begins
}

// agentOverlay has the agent's settings for tests, in addition to the example.
const agentOverlay = `
log_level = "DEBUG"
log_json  = true
http {
  bind_address = "127.0.0.1"
  bind_port    = %d
}
policy {
  source "nomad" {
    enabled = false
  }
}
`

// StartAgent starts the agent with the project's own examples: their addresses and
// paths are replaced by those of the stack, and their times by shorter ones. It may
// be called again after the agent was killed; the same log file is continued.
func (s *Stack) StartAgent(t testing.TB) *Agent {
	t.Helper()
	return s.StartAgentAs(t, "agent")
}

// StartAgentAs is StartAgent for one more agent, with files of its own.
func (s *Stack) StartAgentAs(t testing.TB, name string) *Agent {
	t.Helper()
	agent := s.LaunchAgent(t, name)
	Eventually(t, 30*time.Second, "the agent has launched the plugin", func() error {
		if !agent.Running() {
			return fmt.Errorf("the agent has ended:\n%s", tail(agent.Log, 20))
		}
		_, err := agent.plugin()
		return err
	})
	return agent
}

// LaunchAgent starts an agent with files of its own and does not wait for its plugin, which one that
// stands by does not start.
func (s *Stack) LaunchAgent(t testing.TB, name string) *Agent {
	t.Helper()
	dir := filepath.Join(s.Dir, name)
	plugins, policies, temporary := filepath.Join(dir, "plugins"), filepath.Join(dir, "policies"), filepath.Join(dir, "tmp")
	for _, path := range []string{plugins, policies, temporary} {
		check(t, path, os.MkdirAll(path, 0o700))
	}
	link := filepath.Join(plugins, "harvester")
	if _, err := os.Lstat(link); err != nil {
		check(t, link, os.Symlink(Plugin(t), link))
	}
	cloudInit, user := "cloud-init.yaml", map[string]string{`["nomad.example.org"]`: fmt.Sprintf("[%q]", s.Nomad.RPC)}
	switch {
	case s.Introduction != "":
		cloudInit = "cloud-init-introduction.yaml"
	case s.Nomad.TLS != nil:
		cloudInit, user["deadline"] = "cloud-init-tls.yaml", fmt.Sprintf("%q", s.DrainOnShutdown)
	}
	userData := fromExample(t, cloudInit, dir, user)
	policy := map[string]string{
		"user_data_file":                fmt.Sprintf("%q", userData),
		"evaluation_interval":           `"1s"`,
		"cooldown":                      `"1s"`,
		"node_drain_deadline":           fmt.Sprintf("%q", s.DrainDeadline),
		"node_drain_ignore_system_jobs": `"false"`,
		"drain_grace":                   `"30s"`,
		"join_timeout":                  fmt.Sprintf("%q", s.JoinTimeout),
		"dry-run":                       `"false"`,
		"namespace":                     fmt.Sprintf("%q", s.Namespace),
	}
	if s.Introduction != "" {
		policy[`# nomad_intro_token = "required"`] = fmt.Sprintf("nomad_intro_token = %q", s.Introduction)
	}
	example := must[[]byte](t, "policy.hcl")(os.ReadFile(filepath.Join(Root, "examples", "policy.hcl")))
	for key, value := range s.PolicyKeys {
		if regexp.MustCompile(`(?m)^\s*` + key + `\s*=`).Match(example) {
			policy[key] = fmt.Sprintf("%q", value)
		} else {
			policy["user_data_file"] += fmt.Sprintf("\n      %s = %q", key, value)
		}
	}
	fromExample(t, "policy.hcl", policies, policy)
	if s.Check != "" {
		useCheck(t, filepath.Join(policies, "policy.hcl"), s.Check)
	}
	if s.Template != "" {
		useTemplate(t, filepath.Join(policies, "policy.hcl"), s.Template)
	}
	agentKeys := map[string]string{
		"plugin_dir":              fmt.Sprintf("%q", plugins),
		`"http://127.0.0.1:4646"`: fmt.Sprintf("%q", s.Nomad.URL),
		"dir":                     fmt.Sprintf("%q", policies),
		`"http://127.0.0.1:9090"`: fmt.Sprintf("%q", s.Metrics.URL),
		"harvester_url":           fmt.Sprintf("%q", s.FrontDoor.URL),
		"harvester_ca_cert":       fmt.Sprintf("%q", s.Certificates.CAFile),
		"auth_token_file":         fmt.Sprintf("%q", s.PluginTokenFile),
	}
	if s.MetricsAddress != "" {
		agentKeys["max_concurrency"] = fmt.Sprintf("\"10\"\n    metrics_address = %q", s.MetricsAddress)
	}
	config := fromExample(t, "agent.hcl", dir, agentKeys)
	overlay := filepath.Join(dir, "overlay.hcl")
	check(t, overlay, os.WriteFile(overlay, fmt.Appendf(nil, agentOverlay+s.AgentSettings, freePort(t)), 0o600))

	cmd := exec.Command(part(t, s.AgentPart, "nomad-autoscaler"), "agent", "-config", config, "-config", overlay)
	// Not this process's environment: HARVESTER_TOKEN, for example, would take precedence.
	cmd.Env = append(s.environment(t), "PATH="+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+temporary)
	old := 0
	if log, err := os.Stat(filepath.Join(s.Dir, "nomad-autoscaler-"+name+".log")); err == nil {
		old = int(log.Size())
	}
	return &Agent{Process: start(t, s.Dir, "nomad-autoscaler-"+name, cmd), dir: dir, old: old}
}

// environment is what the agent and the commands beside it have of Nomad's.
func (s *Stack) environment(t testing.TB) []string {
	t.Helper()
	variables := []string{"NOMAD_TOKEN=" + s.PluginNomadToken}
	if s.Nomad.TLS != nil {
		variables = append(variables, s.Nomad.TLS.environment(t)...)
	}
	return variables
}

// useCheck replaces the check of a policy.
func useCheck(t testing.TB, path, check string) {
	t.Helper()
	policy := must[[]byte](t, path)(os.ReadFile(path))
	old := regexp.MustCompile(`(?sm)^    check "allocations" \{.*?^    \}\n`)
	if found := len(old.FindAll(policy, -1)); found != 1 {
		t.Fatalf("%s has %d checks, want 1", path, found)
	}
	must[any](t, path)(nil, os.WriteFile(path, old.ReplaceAllLiteral(policy, []byte(check)), 0o600))
}

// useTemplate removes the keys of a policy that a template can say, and names one.
func useTemplate(t testing.TB, path, template string) {
	t.Helper()
	policy := must[[]byte](t, path)(os.ReadFile(path))
	keys := regexp.MustCompile(`(?m)^\s*(image|cpu_request|memory_request|disk_size|networks)\s*=.*\n`)
	if found := len(keys.FindAll(policy, -1)); found != 5 {
		t.Fatalf("%s has %d of the keys, want 5", path, found)
	}
	policy = keys.ReplaceAll(policy, nil)
	target := []byte("target \"harvester\" {\n")
	policy = bytes.Replace(policy, target, fmt.Appendf(target, "vm_template = %q\n", template), 1)
	check(t, path, os.WriteFile(path, policy, 0o600))
}

// CollectGarbage runs "harvester gc" like an operator, with the plugin's rights,
// and returns its output.
func (s *Stack) CollectGarbage(t testing.TB) string {
	t.Helper()
	cmd := exec.Command(Plugin(t), "gc", "--yes", "--set", "namespace="+s.Namespace, "--set", "harvester_ca_cert="+s.Certificates.CAFile)
	cmd.Env = []string{
		"HARVESTER_URL=" + s.FrontDoor.URL, "HARVESTER_TOKEN_FILE=" + s.PluginTokenFile,
		"NOMAD_ADDR=" + s.Nomad.URL, "NOMAD_TOKEN=" + s.PluginNomadToken,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("harvester gc: %v\n%s", err, out)
	}
	return string(out)
}

// Command runs a command of the executable like an operator beside the agent, with
// the agent's own files and the plugin's rights. It returns standard output and
// error in one, and the exit code.
func (s *Stack) Command(t testing.TB, command string, arguments ...string) (string, int) {
	t.Helper()
	arguments = append([]string{command, "--agent-config", filepath.Join(s.Dir, "agent", "agent.hcl")}, arguments...)
	cmd := exec.Command(Plugin(t), arguments...)
	cmd.Env = s.environment(t)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatalf("harvester %v: %v", arguments, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// plugin returns the process of the target; one of an APM block has an argument.
func (a *Agent) plugin() (int, error) {
	pids, err := a.Children("harvester")
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && bytes.HasSuffix(line, []byte("\x00apm\x00"))
	})
	if err == nil && len(pids) != 1 {
		err = fmt.Errorf("%d processes of the plugin", len(pids))
	}
	if err != nil {
		return 0, err
	}
	return pids[0], nil
}

// KillPlugin kills only the plugin with SIGKILL; the agent does not start it again.
func (a *Agent) KillPlugin(t testing.TB) {
	t.Helper()
	check(t, "kill the plugin", syscall.Kill(must[int](t, "the plugin's process")(a.plugin()), syscall.SIGKILL))
}

// KillAgent kills only the agent with SIGKILL, and waits until the plugin has noticed and has ended itself.
func (a *Agent) KillAgent(t testing.TB) {
	t.Helper()
	plugin := must[int](t, "the plugin's process")(a.plugin())
	check(t, "kill the agent", syscall.Kill(a.Pid(), syscall.SIGKILL))
	<-a.Done()
	awaitEnd(t, plugin)
}

// KillBoth kills plugin and agent with SIGKILL, as in a power cut.
func (a *Agent) KillBoth(t testing.TB) {
	t.Helper()
	plugin := must[int](t, "the plugin's process")(a.plugin())
	check(t, "kill the plugin", syscall.Kill(plugin, syscall.SIGKILL))
	a.Kill()
	awaitEnd(t, plugin)
}

// StopInOrder ends the agent gracefully: its plugin leaves no temporary file behind.
func (a *Agent) StopInOrder(t testing.TB) {
	t.Helper()
	plugin := must[int](t, "the plugin's process")(a.plugin())
	a.Stop(20 * time.Second)
	awaitEnd(t, plugin)
	if left := must[[]string](t, "temporary directory")(filepath.Glob(filepath.Join(a.dir, "tmp", "*"))); len(left) > 0 {
		t.Errorf("the plugin left behind: %v", left)
	}
}

func awaitEnd(t testing.TB, plugin int) {
	t.Helper()
	Eventually(t, 10*time.Second, "the plugin is gone", func() error {
		if err := syscall.Kill(plugin, 0); err != syscall.ESRCH {
			return fmt.Errorf("process %d: %v", plugin, err)
		}
		return nil
	})
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

// NewLines returns what the agent has written since it was started.
func (a *Agent) NewLines(t testing.TB) []string {
	t.Helper()
	data := must[[]byte](t, "the agent's log")(os.ReadFile(a.Log))
	return strings.Split(string(data[a.old:]), "\n")
}

// fromExample copies an example with some of its values changed, and returns the
// copy's path. A change names an attribute, or a value that is in quotes or
// brackets; it must match exactly once, so that the test fails when the example
// no longer has what it expects.
func fromExample(t testing.TB, name, dir string, changes map[string]string) string {
	t.Helper()
	example := filepath.Join(Root, "examples", name)
	text := string(must[[]byte](t, example)(os.ReadFile(example)))
	for what, value := range changes {
		pattern := `(?m)^(\s*` + regexp.QuoteMeta(what) + `\s*=\s*)".*"`
		if strings.ContainsAny(what, `"[`) {
			pattern = `()` + regexp.QuoteMeta(what)
		}
		place := regexp.MustCompile(pattern)
		if found := len(place.FindAllString(text, -1)); found != 1 {
			t.Fatalf("%s has %s in %d places, want 1", example, what, found)
		}
		text = place.ReplaceAllString(text, "${1}"+strings.ReplaceAll(value, "$", "$$"))
	}
	path := filepath.Join(dir, name)
	check(t, path, os.WriteFile(path, []byte(text), 0o600))
	return path
}
