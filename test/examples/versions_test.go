// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The rows of README's "What it works with" that name what a module of the tests requires.
var tested = []struct {
	row     string
	module  string
	modules []string
}{
	{"Kubernetes' API server", "k8s.io/kubernetes", []string{"parts/kube/go.mod"}},
	{"Harvester", "github.com/harvester/harvester", []string{"parts/harvester/go.mod", "parts/harvester/go-1.6.mod"}},
	{"KubeVirt", "kubevirt.io/kubevirt", []string{"parts/kubevirt/go.mod", "parts/kubevirt/go-1.5.mod"}},
	{"Nomad", "github.com/hashicorp/nomad", []string{"parts/nomad/go.mod"}},
	{"Nomad Autoscaler", "github.com/hashicorp/nomad-autoscaler", []string{"parts/agent/go.mod", "parts/agent046/go.mod", "contract/go.mod"}},
	{"Prometheus", "github.com/prometheus/prometheus", []string{"examples/go.mod"}},
}

func TestTheReadmeNamesTheVersionsThatTheTestsRun(t *testing.T) {
	readme := contentOf(t, "..", "..", "README.md")
	for _, system := range tested {
		var required []string
		for _, file := range system.modules {
			required = append(required, requiredVersion(t, file, system.module))
		}
		slices.Sort(required)
		required = slices.Compact(required)
		cell := match(t, readme, `(?m)^\| `+regexp.QuoteMeta(system.row)+` \| ([^|]*) \|`)
		named := regexp.MustCompile(`\d+\.\d+\.\d+`).FindAllString(cell, -1)
		slices.Sort(named)
		if !slices.Equal(named, required) {
			t.Errorf("README names %v for %s, the tests run %v", named, system.row, required)
		}
	}
}

func TestTheJobOfTheExamplesRunsTheTestedAgentAndThisRelease(t *testing.T) {
	job := read(t, "autoscaler.nomad.hcl")
	agent := requiredVersion(t, "parts/agent/go.mod", "github.com/hashicorp/nomad-autoscaler")
	if image := match(t, job, `image = "hashicorp/nomad-autoscaler:(.*)"`); image != agent {
		t.Errorf("the job runs the agent %s, the tests %s", image, agent)
	}
	release := match(t, contentOf(t, "..", "..", "CMakeLists.txt"), `(?m)^project\(\S+ VERSION (\S+)`)
	if plugin := match(t, job, `/harvester_(.*)_linux_amd64\.tar\.gz"`); plugin != release {
		t.Errorf("the job fetches the plugin %s, this is %s", plugin, release)
	}
}

// requiredVersion returns the version of a module in a go.mod, a file below test. Prometheus 3.8.1 is the module
// 0.308.1 (prometheus/prometheus:RELEASE.md).
func requiredVersion(t *testing.T, file, module string) string {
	t.Helper()
	version := match(t, contentOf(t, "..", file), `(?m)^\s*(?:require )?`+regexp.QuoteMeta(module)+` v(\S+)`)
	var minor, patch int
	if count, _ := fmt.Sscanf(version, "0.3%02d.%d", &minor, &patch); count == 2 {
		return fmt.Sprintf("3.%d.%d", minor, patch)
	}
	return version
}

func match(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	return found[1]
}

func contentOf(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
