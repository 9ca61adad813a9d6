// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/hashicorp/nomad-autoscaler/agent/config"
	_ "github.com/hashicorp/nomad-autoscaler/policy/file" // has decodeFile
	"github.com/hashicorp/nomad-autoscaler/sdk"
	nomadHelper "github.com/hashicorp/nomad-autoscaler/sdk/helper/nomad"
)

// The agent's own reader of a policy file. linkname.s, which is empty, allows a function without a
// body.
//
//go:linkname decodeFile github.com/hashicorp/nomad-autoscaler/policy/file.decodeFile
func decodeFile(file string) (map[string]*sdk.ScalingPolicy, error)

type fileTarget struct {
	Driver string            `json:"driver"`
	Config map[string]string `json:"config"`
}

type filePolicy struct {
	Name    string            `json:"name"`
	Enabled bool              `json:"enabled"`
	Target  string            `json:"target"`
	Config  map[string]string `json:"config"`
}

// A line of the reader's output.
type ourReading struct {
	Error string          `json:"error"`
	Read  json.RawMessage `json:"read"`
}

// What the commands read of each file.
func ourReadings(t *testing.T, kind string, paths []string) []ourReading {
	t.Helper()
	command := exec.Command(agentFiles, append([]string{kind}, paths...)...)
	command.Stderr = os.Stderr
	out := must1(command.Output())(t)
	readings := make([]ourReading, 0, len(paths))
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var reading ourReading
		must(t, json.Unmarshal(line, &reading))
		readings = append(readings, reading)
	}
	if len(readings) != len(paths) {
		t.Fatalf("%d of %d files were read", len(readings), len(paths))
	}
	return readings
}

// What the agent hands to each target's plugin (agent/plugins.go, setupPluginConfig).
func agentTargets(path string) (map[string]fileTarget, error) {
	agent, err := config.LoadPaths([]string{path})
	if err != nil {
		return nil, err
	}
	targets := map[string]fileTarget{}
	for _, target := range agent.Targets {
		handed := maps.Clone(target.Config)
		if handed == nil {
			handed = map[string]string{}
		}
		if inherit, given := handed["nomad_config_inherit"]; !given || inherit == "true" {
			nomadHelper.MergeMapWithAgentConfig(handed, nomadHelper.MergeDefaultWithAgentConfig(agent.Nomad))
		}
		targets[target.Name] = fileTarget{target.Driver, handed}
	}
	withoutDefaults(targets)
	return targets, nil
}

// What the agent adds without any file: the defaults of Nomad's client.
func withoutDefaults(targets map[string]fileTarget) {
	defaults := map[string]string{"nomad_block-query-wait-time": "5m0s"}
	nomadHelper.MergeMapWithAgentConfig(defaults, nomadHelper.MergeDefaultWithAgentConfig(&config.Nomad{}))
	for _, target := range targets {
		for key, value := range defaults {
			if target.Config[key] == value {
				delete(target.Config, key)
			}
		}
	}
}

func agentPolicies(path string) (map[string]filePolicy, error) {
	decoded, err := decodeFile(path)
	if err != nil {
		return nil, err
	}
	policies := map[string]filePolicy{}
	for name, policy := range decoded {
		if policy.Target == nil && policy.Enabled {
			return nil, errors.New("the agent crashes: " + name + " has no target")
		}
		if policy.Target != nil {
			policies[name] = filePolicy{name, policy.Enabled, policy.Target.Name, policy.Target.Config}
		}
	}
	return policies, nil
}

// A file as both read it: equal values, if there are no errors.
type comparison struct {
	path         string
	ours, agents any
	ourError     string
	agentError   error
}

func (c comparison) String() string {
	return fmt.Sprintf("%s:\nwe read       %q %s\nthe agent has %q %v", c.path, c.ours, c.ourError, c.agents, c.agentError)
}

// Both read it alike, or both reject it.
func (c comparison) agrees() bool {
	if c.ourError != "" || c.agentError != nil {
		return c.ourError != "" && c.agentError != nil
	}
	return reflect.DeepEqual(c.ours, c.agents)
}

func compare(t *testing.T, kind string, paths ...string) []comparison {
	t.Helper()
	comparisons := make([]comparison, 0, len(paths))
	for i, reading := range ourReadings(t, kind, paths) {
		c := comparison{path: paths[i], ourError: reading.Error}
		var err error
		if kind == "agent" {
			c.ours, err = targetsOf(reading)
			c.agents, c.agentError = agentTargets(c.path)
		} else {
			c.ours, err = policiesOf(reading)
			c.agents, c.agentError = agentPolicies(c.path)
		}
		if err != nil {
			t.Fatal(err)
		}
		comparisons = append(comparisons, c)
	}
	return comparisons
}

func targetsOf(reading ourReading) (map[string]fileTarget, error) {
	if reading.Error != "" {
		return nil, nil
	}
	var targets map[string]fileTarget
	err := json.Unmarshal(reading.Read, &targets)
	withoutDefaults(targets)
	return targets, err
}

func policiesOf(reading ourReading) (map[string]filePolicy, error) {
	if reading.Error != "" {
		return nil, nil
	}
	var list []filePolicy
	err := json.Unmarshal(reading.Read, &list)
	policies := map[string]filePolicy{}
	for _, policy := range list {
		policies[policy.Name] = policy
	}
	return policies, err
}

// The environment of Nomad's client would be in the agent's maps.
func withoutNomadVariables(t *testing.T) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "NOMAD_") {
			t.Setenv(name, "")
		}
	}
}

func filesOf(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return paths
}

func expectAgreement(t *testing.T, comparisons []comparison) {
	t.Helper()
	for _, c := range comparisons {
		if !c.agrees() {
			t.Error(c)
		}
	}
}

func TestFilesAreReadAsByTheAgent(t *testing.T) {
	withoutNomadVariables(t)
	for kind, example := range map[string]string{"agent": "../../examples/agent.hcl", "policy": "../../examples/policy.hcl"} {
		for _, c := range compare(t, kind, example) {
			if !c.agrees() || c.agentError != nil {
				t.Error(c)
			}
		}
		expectAgreement(t, compare(t, kind, filesOf(t, "testdata/agent-files/"+kind+"/*.*")...))
	}
}

// Read here, with a warning, while the agent that is tested refuses it.
func TestTheFunctionOfTheAgentsNextReleaseIsRead(t *testing.T) {
	withoutNomadVariables(t)
	for _, c := range compare(t, "policy", filesOf(t, "testdata/agent-files/newer/*")...) {
		if c.ourError != "" || c.agentError == nil {
			t.Error(c)
		}
	}
}

// Files in alphabetical order, of which a later one's map replaces an earlier one's; temporary files
// of editors and other suffixes are none.
func TestDirectoriesAreReadAsByTheAgent(t *testing.T) {
	withoutNomadVariables(t)
	expectAgreement(t, compare(t, "agent", filesOf(t, "testdata/agent-files/directories/*")...))
}

func TestValuesAreThoseOfTheAgent(t *testing.T) {
	withoutNomadVariables(t)
	expectAgreement(t, compare(t, "agent", writeValues(t, values)...))
}

// What the agent would compute is an error here, never another value.
func TestWhatIsNotReadLikeTheAgentIsAnError(t *testing.T) {
	withoutNomadVariables(t)
	for i, c := range compare(t, "agent", writeValues(t, strictlyOurs)...) {
		if c.agentError != nil {
			t.Errorf("the agent does not read it either: %v", c)
		}
		if !strings.HasPrefix(c.ourError, c.path+":3:") {
			t.Errorf("no error with its place: %s: %v", strictlyOurs[i], c)
		}
	}
}

func writeValues(t *testing.T, values []string) []string {
	t.Helper()
	directory := t.TempDir()
	paths := make([]string, 0, len(values))
	for i, value := range values {
		path := filepath.Join(directory, fmt.Sprintf("%d.hcl", i))
		text := "target \"web\" {\n  driver = \"harvester\"\n  config = { key = " + value + "\n  }\n}\n"
		must(t, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	return paths
}

// Values of pieces that the language treats in a special way, in any order.
func TestRandomTextsAreThoseOfTheAgent(t *testing.T) {
	withoutNomadVariables(t)
	random := rand.New(rand.NewSource(1))
	var values []string
	for range 2000 {
		form := random.Intn(3)
		pieces := quotedPieces
		if form > 0 {
			pieces = heredocPieces
		}
		var text strings.Builder
		for range random.Intn(8) {
			text.WriteString(pieces[random.Intn(len(pieces))])
		}
		format := [...]string{"\"%s\"", "<<EOF\n%s\nEOF", "<<-EOF\n%s\n  EOF"}[form]
		values = append(values, fmt.Sprintf(format, text.String()))
	}
	read := 0
	for i, c := range compare(t, "agent", writeValues(t, values)...) {
		if strings.Contains(c.ourError, "not read here") {
			continue
		}
		if !c.agrees() {
			t.Errorf("%q: %v", values[i], c)
		}
		if c.ourError == "" {
			read++
		}
	}
	if read < 500 {
		t.Errorf("only %d of the texts were read at all", read)
	}
}
