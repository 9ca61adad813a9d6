// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad-autoscaler/sdk"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Neither Terraform nor its providers are here: this evaluates examples/terraform with Terraform's language, and
// compares what it sets with the names that the providers document.

const exampleTerraform = "../../examples/terraform"

// An argument or nested block of a kind of block; one with "!" is required.
var terraformArguments = map[string]string{
	// hashicorp/terraform:internal/configs
	"terraform": "required_version required_providers", "required_providers": "harvester kubernetes",
	"variable": "type description", "output": "value", "locals": "rights", "lifecycle": "prevent_destroy",
	// harvester/terraform-provider-harvester@v1.8.1:docs/index.md, docs/resources/image.md, docs/resources/network.md
	"provider harvester":         "kubeconfig kubecontext",
	"resource harvester_image":   "display_name! name! source_type! namespace file_path",
	"resource harvester_network": "cluster_network_name! name! vlan_id! namespace",
	// hashicorp/terraform-provider-kubernetes@v3.2.1:docs/index.md, docs/resources/namespace_v1.md, docs/resources/manifest.md
	"provider kubernetes":              "config_path config_context",
	"resource kubernetes_namespace_v1": "metadata! lifecycle", "metadata": "name",
	"resource kubernetes_manifest": "manifest! for_each depends_on",
}

func terraformBlocks(t *testing.T) hclsyntax.Blocks {
	t.Helper()
	file, problems := hclparse.NewParser().ParseHCLFile(filepath.Join(exampleTerraform, "main.tf"))
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return file.Body.(*hclsyntax.Body).Blocks
}

// kindOf is such as "resource harvester_image": of a variable and an output the name does not matter.
func kindOf(block *hclsyntax.Block) string {
	if block.Type == "resource" || block.Type == "provider" {
		return block.Type + " " + block.Labels[0]
	}
	return block.Type
}

func checkArguments(t *testing.T, block *hclsyntax.Block) {
	t.Helper()
	known, isKnown := terraformArguments[kindOf(block)]
	if !isKnown {
		t.Errorf("look up what the block %s has, and name it in this test", kindOf(block))
	}
	given := slices.Collect(maps.Keys(block.Body.Attributes))
	for _, nested := range block.Body.Blocks {
		given = append(given, nested.Type)
		checkArguments(t, nested)
	}
	for _, name := range strings.Fields(known) {
		if name, required := strings.CutSuffix(name, "!"); required && !slices.Contains(given, name) {
			t.Errorf("%s has no %s", kindOf(block), name)
		}
	}
	for _, name := range given {
		if !slices.Contains(strings.Fields(strings.ReplaceAll(known, "!", "")), name) {
			t.Errorf("%s has %s, which its provider does not document", kindOf(block), name)
		}
	}
}

func TestTerraformIsGivenWhatItsProvidersDocument(t *testing.T) {
	var kinds []string
	for _, block := range terraformBlocks(t) {
		checkArguments(t, block)
		kinds = append(kinds, kindOf(block))
	}
	for kind := range terraformArguments {
		if strings.HasPrefix(kind, "resource ") && !slices.Contains(kinds, kind) {
			t.Errorf("the example makes no %s", kind)
		}
	}
}

// terraformFunctions are those that the example calls, as Terraform defines them
// (hashicorp/terraform:internal/lang/functions.go).
func terraformFunctions() map[string]function.Function {
	text := func(implementation func(path string, variables cty.Value) (string, error), parameters ...function.Parameter) function.Function {
		return function.New(&function.Spec{
			Params: append([]function.Parameter{{Name: "path", Type: cty.String}}, parameters...),
			Type:   function.StaticReturnType(cty.String),
			Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
				result, err := implementation(arguments[0].AsString(), arguments[len(arguments)-1])
				return cty.StringVal(result), err
			},
		})
	}
	return map[string]function.Function{
		"split":      stdlib.SplitFunc,
		"yamldecode": yaml.YAMLDecodeFunc,
		"file": text(func(path string, _ cty.Value) (string, error) {
			content, err := os.ReadFile(path)
			return string(content), err
		}),
		"templatefile": text(func(path string, variables cty.Value) (string, error) {
			content, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			template, problems := hclsyntax.ParseTemplate(content, path, hcl.InitialPos)
			if problems.HasErrors() {
				return "", problems
			}
			result, problems := template.Value(&hcl.EvalContext{Variables: variables.AsValueMap()})
			if problems.HasErrors() {
				return "", problems
			}
			return result.AsString(), nil
		}, function.Parameter{Name: "variables", Type: cty.DynamicPseudoType}),
	}
}

// terraformValues evaluates the example: what it makes of rbac.yaml, by "namespace/kind/name", and the policy.
func terraformValues(t *testing.T) (rights map[string]cty.Value, policy string) {
	t.Helper()
	value := func(expression hclsyntax.Expression, context *hcl.EvalContext) cty.Value {
		t.Helper()
		result, problems := expression.Value(context)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		return result
	}
	root := &hcl.EvalContext{Functions: terraformFunctions(), Variables: map[string]cty.Value{
		"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(exampleTerraform)}),
		"var":  cty.ObjectVal(map[string]cty.Value{"image": cty.StringVal("disk.qcow2"), "vlan": cty.NumberIntVal(10)}),
	}}
	made := map[string]map[string]cty.Value{}
	blocks := terraformBlocks(t)
	for _, block := range blocks {
		switch kindOf(block) {
		case "locals":
			root.Variables["local"] = cty.ObjectVal(map[string]cty.Value{"rights": value(block.Body.Attributes["rights"].Expr, root)})
		case "resource kubernetes_namespace_v1":
			metadata := map[string]cty.Value{"name": value(block.Body.Blocks[0].Body.Attributes["name"].Expr, root)}
			made[block.Labels[0]] = map[string]cty.Value{block.Labels[1]: cty.ObjectVal(map[string]cty.Value{
				"metadata": cty.TupleVal([]cty.Value{cty.ObjectVal(metadata)}),
			})}
		case "resource harvester_image", "resource harvester_network":
			name, namespace := value(block.Body.Attributes["name"].Expr, root), value(block.Body.Attributes["namespace"].Expr, root)
			// harvester/terraform-provider-harvester@v1.8.1:pkg/helper/id.go, BuildID
			made[block.Labels[0]] = map[string]cty.Value{block.Labels[1]: cty.ObjectVal(map[string]cty.Value{
				"id": cty.StringVal(namespace.AsString() + "/" + name.AsString()),
			})}
		}
	}
	for kind, resources := range made {
		root.Variables[kind] = cty.ObjectVal(resources)
	}
	for _, block := range blocks {
		switch kindOf(block) {
		case "resource kubernetes_manifest":
			rights = value(block.Body.Attributes["for_each"].Expr, root).AsValueMap()
		case "output":
			policy = value(block.Body.Attributes["value"].Expr, root).AsString()
		}
	}
	return rights, policy
}

func TestTerraformMakesEachObjectOfTheRights(t *testing.T) {
	rights, _ := terraformValues(t)
	want := []string{
		"default/Role/nomad-harvester-autoscaler-sources", "default/RoleBinding/nomad-harvester-autoscaler-sources",
		"nomad/Role/nomad-harvester-autoscaler", "nomad/RoleBinding/nomad-harvester-autoscaler",
		"nomad/ServiceAccount/nomad-harvester-autoscaler",
	}
	if got := slices.Sorted(maps.Keys(rights)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if rules := rights[want[2]].GetAttr("rules").LengthInt(); rules < 9 {
		t.Errorf("%d rules in the pool's namespace", rules)
	}
}

// The policy is read by the agent's own reader, and the plugin makes a VM of it.
func TestThePolicyThatTerraformWritesMakesAVM(t *testing.T) {
	_, policy := terraformValues(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.hcl")
	userData := must1(os.ReadFile("../../examples/cloud-init.yaml"))(t)
	for name, content := range map[string]string{
		"policy.hcl": strings.ReplaceAll(policy, "/etc/nomad-autoscaler", dir), "cloud-init.yaml": string(userData),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, c := range compare(t, "policy", path) {
		if !c.agrees() || c.agentError != nil {
			t.Error(c)
		}
	}
	policies := must1(agentPolicies(path))(t)
	target := policies["batch-workers"].Config
	for key, want := range map[string]string{"namespace": "nomad", "image": "default/nomad-client", "networks": "default/nomad-clients"} {
		if target[key] != want {
			t.Errorf("%s is %q, want %q", key, target[key], want)
		}
	}
	// What the simulated Harvester has.
	target["image"], target["networks"] = "default/ubuntu-24.04", "default/vlan10"
	target["dry-run"] = "false"
	cluster := clusterFor(t)
	h := launch(t, realPlugin)
	if err := h.target.SetConfig(map[string]string{"harvester_url": cluster.harvester, "nomad_address": cluster.nomad,
		"auth_token": "any"}); err != nil {
		t.Fatal(err)
	}
	if err := h.target.Scale(sdk.ScalingAction{Count: 1}, target); err != nil {
		t.Fatalf("%v\n%s", err, h.stderr)
	}
	waitUntil(t, "the VM has joined", func() bool {
		status := h.status(target)
		return status.Ready && status.Count == 1
	})
}
