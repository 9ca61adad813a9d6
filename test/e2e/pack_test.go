// SPDX-License-Identifier: Apache-2.0

// The Nomad pack in examples/pack.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"nomad-harvester.local/test/e2e/harness"
)

// Nomad's own parser makes the same job of both.
func TestThePackIsTheExamplesJobAndItsVariablesChangeIt(t *testing.T) {
	want := parsedJob(t, filepath.Join(harness.Root, "examples", "autoscaler.nomad.hcl"))
	want["Namespace"], want["Datacenters"] = "default", []any{"*"} // Nomad's defaults, which the file leaves out
	rendered := renderPack(t, nil)
	if got := parsedJob(t, written(t, rendered)); !reflect.DeepEqual(got, want) {
		t.Errorf("the pack's job is not that of autoscaler.nomad.hcl:\n%v\n--- want:\n%v\n--- made of:\n%s", got, want, rendered)
	}

	changed := renderPack(t, map[string]any{
		"job_name": "other", "datacenters": []string{"dc1", "dc2"}, "count": 3, "excluded_node_class": "gpu",
		"image": "registry.example.org/agent:1", "plugin_url": "", "user_data": "cloud-init-tls.yaml", "policy": "policy.hcl",
		"nomad_address": "https://nomad.example.org:4646", "secrets": "nomad/jobs/other",
		"resources": map[string]any{"cpu": 300, "memory": 512},
	})
	job := parsedJob(t, written(t, changed))
	group := job.List("TaskGroups")[0]
	task := group.List("Tasks")[0]
	for what, is := range map[string]bool{
		"job_name":            job.Str("ID") == "other",
		"datacenters":         fmt.Sprint(job.At("Datacenters")) == "[dc1 dc2]",
		"count":               group.Int("Count") == 3,
		"excluded_node_class": group.List("Constraints")[0].Str("RTarget") == "gpu",
		"image":               task.Str("Config", "image") == "registry.example.org/agent:1",
		"no artifact":         len(task.List("Artifacts")) == 0,
		"plugin_dir":          strings.Contains(fmt.Sprint(task), `plugin_dir = "/opt/nomad-autoscaler/plugins"`),
		"nomad_address":       strings.Contains(fmt.Sprint(task), `address = "https://nomad.example.org:4646"`),
		"secrets":             strings.Contains(fmt.Sprint(task), `nomadVar "nomad/jobs/other"`),
		"policy":              strings.Contains(fmt.Sprint(task), "nomad_nomad_job_status_running"),
		"user_data":           strings.Contains(fmt.Sprint(task), "drain_on_shutdown"),
		"resources":           task.Int("Resources", "CPU") == 300 && task.Int("Resources", "MemoryMB") == 512,
	} {
		if !is {
			t.Errorf("%s has no effect:\n%s", what, changed)
		}
	}
	t.Run("in a cluster", func(t *testing.T) { checkPackIsAccepted(t, rendered, changed) })
}

func checkPackIsAccepted(t *testing.T, jobs ...string) {
	t.Helper()
	s := harness.StartNomad(t, harness.NomadOptions{})
	for _, job := range jobs {
		if out, err := s.Nomad.Command(t, harness.Root, "job", "validate", written(t, job)); err != nil || !strings.Contains(out, "successful") {
			t.Errorf("nomad job validate: %v: %s", err, out)
		}
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.nomad.hcl")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// parsedJob is what Nomad's command line sends to its server for a job.
func parsedJob(t *testing.T, path string) harness.Object {
	t.Helper()
	out, err := (&harness.Nomad{}).Command(t, filepath.Dir(path), "job", "run", "-output", path)
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, out)
	}
	var document struct{ Job harness.Object }
	must(t, json.Unmarshal([]byte(out), &document))
	return document.Job
}

// renderPack does what nomad-pack does (hashicorp/nomad-pack:internal/pkg/renderer), with the functions
// that the template uses; scripts/test --long renders with nomad-pack itself.
func renderPack(t *testing.T, values map[string]any) string {
	t.Helper()
	dir := filepath.Join(harness.Root, "examples", "pack")
	variables := packDefaults(t, filepath.Join(dir, "variables.hcl"))
	for name, value := range values {
		if _, found := variables[name]; !found {
			t.Fatalf("the pack has no variable %s", name)
		}
		variables[name] = value
	}
	functions := template.FuncMap{
		"var": func(path string, _ any) (value any, err error) {
			value = any(variables)
			for name := range strings.SplitSeq(path, ".") {
				object, _ := value.(map[string]any)
				found := false
				if value, found = object[name]; !found {
					return nil, fmt.Errorf("no variable %s", path)
				}
			}
			return value, nil
		},
		"fileContents": func(path string) (string, error) {
			data, err := os.ReadFile(filepath.Join(harness.Root, path))
			return string(data), err
		},
		"replace": func(old, new, text string) string { return strings.ReplaceAll(text, old, new) },
		"toJson": func(value any) (string, error) {
			data, err := json.Marshal(value)
			return string(data), err
		},
	}
	path := filepath.Join(dir, "templates", "autoscaler.nomad.tpl")
	text := must1(os.ReadFile(path))(t)
	parsed := must1(template.New("pack").Delims("[[", "]]").Option("missingkey=error").Funcs(functions).Parse(string(text)))(t)
	var out bytes.Buffer
	must(t, parsed.Execute(&out, nil))
	return out.String()
}

// packDefaults reads the defaults of a pack's variables.
func packDefaults(t *testing.T, path string) map[string]any {
	t.Helper()
	var file struct {
		Variables []struct {
			Name        string         `hcl:"name,label"`
			Type        hcl.Expression `hcl:"type"`
			Description string         `hcl:"description"`
			Default     cty.Value      `hcl:"default"`
		} `hcl:"variable,block"`
	}
	parsed, problems := hclparse.NewParser().ParseHCLFile(path)
	if !problems.HasErrors() {
		problems = gohcl.DecodeBody(parsed.Body, nil, &file)
	}
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	defaults := map[string]any{}
	for _, variable := range file.Variables {
		data := must1(ctyjson.Marshal(variable.Default, variable.Default.Type()))(t)
		var value any
		must(t, json.Unmarshal(data, &value))
		defaults[variable.Name] = value
	}
	return defaults
}
