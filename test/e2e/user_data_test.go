// SPDX-License-Identifier: Apache-2.0

// The user data in examples/ and in docs/lifecycle.md, as "harvester render" makes it of them with
// examples/policy.hcl, in a simulated Harvester.

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"nomad-harvester.local/test/e2e/harness"
)

func TestNomadTakesTheConfigurationOfEachExampleOfUserData(t *testing.T) {
	s := simulate(t)
	paths, err := filepath.Glob(filepath.Join(harness.Root, "examples", "cloud-init*.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("%d examples: %v", len(paths), err)
	}
	for _, path := range paths {
		arguments := []string{"--set", "user_data_file=" + path}
		// What else the example's comment says that the policy needs.
		text := must1(os.ReadFile(path))(t)
		needs := regexp.MustCompile(`(?m)^#   (\w+) += "(.*)"$`).FindAllSubmatch(text, -1)
		for _, key := range needs {
			if string(key[1]) != "user_data_file" {
				arguments = append(arguments, "--set", fmt.Sprintf("%s=%s", key[1], key[2]))
			}
		}
		objects := s.render(t, arguments...)
		checkSchema(t, filepath.Base(path), objects)
		checkNomadConfig(t, filepath.Base(path), objects)
	}
}

// The times of cloud-init-tls.yaml: who kills the machine must wait for longer than who drains it.
func TestTheExampleGivesADrainLessTimeThanTheServiceAndTheVMHaveToStop(t *testing.T) {
	text := must1(os.ReadFile(filepath.Join(harness.Root, "examples", "cloud-init-tls.yaml")))(t)
	seconds := func(pattern string, unit int) int {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("no %s", pattern)
		}
		number := must1(strconv.Atoi(string(found[1])))(t)
		return number * unit
	}
	drain, service, vm := seconds(`deadline = "(\d+)m"`, 60), seconds(`TimeoutStopSec=(\d+)\n`, 1), seconds(`termination_grace_period = "(\d+)m"`, 60)
	// After the deadline Nomad waits for five seconds, and Nomad's agent for five more
	// (hashicorp/nomad:client/drain.go, command/agent/command.go).
	if drain+10 >= service || service >= vm {
		t.Errorf("the drain has %d s, the service %d s, the VM %d s", drain, service, vm)
	}
}

// The blocks of docs/lifecycle.md are lines for a cloud-config, and keys for a policy.
func TestTheSnippetsOfTheDocumentsRender(t *testing.T) {
	s := simulate(t)
	text := must1(os.ReadFile(filepath.Join(harness.Root, "docs", "lifecycle.md")))(t)
	snippets := map[string]int{}
	for _, block := range regexp.MustCompile("(?s)\n```(yaml|hcl)\n(.*?)```\n").FindAllSubmatch(text, -1) {
		kind, body := string(block[1]), string(block[2])
		snippets[kind]++
		if kind == "hcl" {
			var keys []string
			for _, key := range regexp.MustCompile(`(?m)^(\w+) += "(.*)"`).FindAllStringSubmatch(body, -1) {
				keys = append(keys, "--set", key[1]+"="+key[2])
			}
			vm := fmt.Sprint(s.render(t, keys...)["VirtualMachine"])
			for _, part := range []string{"nvidia.com/GA102GL_A10", "nodeAffinity", "gpu.example.org/model"} {
				if !strings.Contains(vm, part) {
					t.Errorf("the VM of %s lacks %s: %s", body, part, vm)
				}
			}
			continue
		}
		path := filepath.Join(t.TempDir(), "user-data.yaml")
		must(t, os.WriteFile(path, []byte("#cloud-config\n"+body), 0o600))
		checkSchema(t, body, s.render(t, "--set", "user_data_file="+path))
	}
	if snippets["yaml"] != 2 || snippets["hcl"] != 1 {
		t.Errorf("%v blocks, want those of Vault and Tailscale, and of a GPU", snippets)
	}
}

// checkNomadConfig runs "nomad config validate" on what is written to /etc/nomad.d.
func checkNomadConfig(t *testing.T, name string, objects map[string]harness.Object) {
	t.Helper()
	files, err := harness.FilesOf(objects["Secret"])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	dir := t.TempDir()
	written := 0
	for path, content := range files {
		if filepath.Dir(path) != "/etc/nomad.d" {
			continue
		}
		written++
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), []byte(content), 0o600))
	}
	out, err := exec.Command(harness.NomadProgram(t), "config", "validate", dir).CombinedOutput()
	if err != nil || written == 0 || !strings.Contains(string(out), "Configuration is valid") {
		t.Errorf("%s: %d files, %v: %s", name, written, err, out)
	}
}

// checkSchema compares user data with cloud-init's own schema.
func checkSchema(t *testing.T, name string, objects map[string]harness.Object) {
	t.Helper()
	schema := must1(jsonschema.NewCompiler().Compile(harness.Part(t, "cloudinit", "schema-cloud-config-v1.json")))(t)
	userData := must1(harness.UserDataOf(objects["Secret"]))(t)
	var document any
	if err := yaml.Unmarshal([]byte(userData), &document); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("%s is no cloud-config: %v", name, err)
	}
}

// simulation is a simulated Harvester, which the executable itself serves.
type simulation struct{ harvester, nomad string }

func simulate(t *testing.T) simulation {
	t.Helper()
	cmd := exec.Command(harness.Plugin(t), "dev", "--simulate")
	cmd.Env = []string{"TMPDIR=" + t.TempDir()}
	output := must1(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("harvester dev: %v", err)
		}
	})
	addresses := map[string]string{}
	for lines := bufio.NewScanner(output); len(addresses) < 3 && lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		addresses[name] = value
	}
	if addresses["harvester_url"] == "" || addresses["nomad_address"] == "" {
		t.Fatalf("harvester dev printed %v", addresses)
	}
	return simulation{addresses["harvester_url"], addresses["nomad_address"]}
}

// render returns the objects of examples/policy.hcl, by their kind. The simulated Harvester has
// neither the network nor the key pair.
func (s simulation) render(t *testing.T, arguments ...string) map[string]harness.Object {
	t.Helper()
	policy := filepath.Join(harness.Root, "examples", "policy.hcl")
	arguments = append([]string{"render", "--policy", policy, "--output", "json", "--set", "harvester_url=" + s.harvester,
		"--set", "nomad_address=" + s.nomad, "--set", "networks=default/vlan100", "--set", "ssh_keys="}, arguments...)
	if !slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "user_data_file=") }) {
		arguments = append(arguments, "--set", "user_data_file="+filepath.Join(harness.Root, "examples", "cloud-init.yaml"))
	}
	cmd := exec.Command(harness.Plugin(t), arguments...)
	cmd.Env = []string{"HARVESTER_TOKEN=token-of-the-simulation"}
	for _, name := range []string{"NOMAD_CA", "NOMAD_CERT", "NOMAD_KEY", "VAULT_SECRET_ID", "TAILSCALE_KEY"} {
		cmd.Env = append(cmd.Env, "HARVESTER_TEMPLATE_"+name+"=c2VjcmV0")
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("harvester %v: %v\n%s", arguments, err, problems.Bytes())
	}
	var list struct{ Items []harness.Object }
	must(t, json.Unmarshal(out, &list))
	objects := map[string]harness.Object{}
	for _, object := range list.Items {
		objects[object.Str("kind")] = object
	}
	if kinds := slices.Sorted(maps.Keys(objects)); !slices.Equal(kinds, []string{"Lease", "Secret", "VirtualMachine"}) {
		t.Fatalf("harvester %v made %v", arguments, kinds)
	}
	return objects
}
