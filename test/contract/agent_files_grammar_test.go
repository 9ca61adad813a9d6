// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/cronexpr"
	"github.com/hashicorp/nomad-autoscaler/agent/config"
	"github.com/hashicorp/nomad-autoscaler/policy"
	"github.com/hashicorp/nomad-autoscaler/sdk"
)

// A body of the configuration language, written as HCL or as JSON. Values are JSON, which is HCL, too.
type body struct {
	arguments [][2]string
	blocks    []block
}

type block struct {
	kind   string
	labels []string
	body
}

func (b body) hcl(indent string) string {
	var text strings.Builder
	for _, argument := range b.arguments {
		fmt.Fprintf(&text, "%s%s = %s\n", indent, argument[0], argument[1])
	}
	for _, inner := range b.blocks {
		text.WriteString(indent + inner.kind)
		for _, label := range inner.labels {
			text.WriteString(" " + strconv.Quote(label))
		}
		text.WriteString(" {\n" + inner.hcl(indent+"  ") + indent + "}\n")
	}
	return text.String()
}

func (b body) json() string {
	var members []string
	for _, argument := range b.arguments {
		members = append(members, strconv.Quote(argument[0])+": "+argument[1])
	}
	for _, inner := range b.blocks {
		text := inner.json()
		for i := len(inner.labels) - 1; i >= 0; i-- {
			text = "{" + strconv.Quote(inner.labels[i]) + ": " + text + "}"
		}
		members = append(members, strconv.Quote(inner.kind)+": "+text)
	}
	return "{" + strings.Join(members, ",\n") + "}"
}

// What a field of the agent's structs is in its files.
type member struct {
	name             string
	label, isBlock   bool
	required, remain bool
	content          reflect.Type // of a block
	kind             reflect.Kind // of an argument
}

func membersOf(of reflect.Type) []member {
	var members []member
	for i := range of.NumField() {
		field := of.Field(i)
		tag, given := field.Tag.Lookup("hcl")
		if !given {
			continue
		}
		name, kind, _ := strings.Cut(tag, ",")
		kindOf := field.Type
		for kindOf.Kind() == reflect.Pointer || (kind == "block" && kindOf.Kind() == reflect.Slice) {
			kindOf = kindOf.Elem()
		}
		members = append(members, member{name: name, label: kind == "label", isBlock: kind == "block",
			required: kind == "" && field.Type.Kind() != reflect.Pointer, remain: kind == "remain", content: kindOf, kind: kindOf.Kind()})
	}
	return members
}

// The least that the agent reads of a block.
func leastBlock(kind string, of reflect.Type) block {
	least := block{kind: kind}
	for _, m := range membersOf(of) {
		switch {
		case m.label && kind == "source":
			least.labels = append(least.labels, "file")
		case m.label:
			least.labels = append(least.labels, "x")
		case m.name == "start":
			least.arguments = append(least.arguments, [2]string{"start", `"0 7 * * *"`}, [2]string{"duration", `"1h"`})
		case m.required && m.kind == reflect.String:
			least.arguments = append(least.arguments, [2]string{m.name, `"x"`})
		case m.required && m.kind == reflect.Bool:
			least.arguments = append(least.arguments, [2]string{m.name, "true"})
		case m.required:
			least.arguments = append(least.arguments, [2]string{m.name, "5"})
		}
	}
	switch kind {
	case "scaling":
		least.arguments = append(least.arguments, [2]string{"enabled", "true"})
	case "policy":
		if of == reflect.TypeFor[sdk.FileDecodePolicyDoc]() {
			least.blocks = []block{leastBlock("check", reflect.TypeFor[sdk.FileDecodePolicyCheckDoc]()),
				leastBlock("target", reflect.TypeFor[sdk.ScalingPolicyTarget]())}
		}
	case "check":
		least.blocks = []block{leastBlock("strategy", reflect.TypeFor[sdk.ScalingPolicyStrategy]())}
	}
	return least
}

var argumentValues = []string{
	`"x"`, `""`, `"5"`, `5`, `-5`, `"-5"`, `0`, `1`, `1.5`, `"1.5"`, `1e3`, `true`, `false`, `"true"`, `"True"`, `"yes"`, `"1"`, `"5m"`, `"1h30m"`,
	`"-5m"`, `"5 min"`, `"1 second"`, `"1d"`, `"instant"`, `"fail"`, `null`, `[]`, `["a"]`, `[1, true]`, `[null]`, `[["a"]]`, `{}`, `{"a": "b"}`,
	`{"a": 1}`, `{"a": -1}`, `{"a": "1"}`, `{"a": 1.5}`, `{"a": true}`, `{"a": null}`, `{"a": ["b"]}`, `99999999999999999999`,
}

// Without the argument that follows in another form.
func without(arguments [][2]string, name string) [][2]string {
	var kept [][2]string
	for _, argument := range arguments {
		if argument[0] != name {
			kept = append(kept, argument)
		}
	}
	return kept
}

// Calls `use` with `content` changed in every way that the agent's structs suggest, wrapped by `wrap`
// into a whole file.
func variants(of reflect.Type, content body, wrap func(body) body, use func(body)) {
	with := func(changed body) { use(wrap(changed)) }
	with(content)
	added := func(arguments [][2]string, name, value string) body {
		return body{append(without(arguments, name), [2]string{name, value}), content.blocks}
	}
	withBlock := func(inner ...block) body {
		others := content.blocks[:0:0]
		for _, other := range content.blocks {
			if other.kind != inner[0].kind {
				others = append(others, other)
			}
		}
		return body{content.arguments, append(others, inner...)}
	}
	for _, name := range []string{"quantum_foam", "job", "source_x"} {
		with(added(content.arguments, name, `"x"`))
		with(withBlock(block{kind: name}))
	}
	for _, m := range membersOf(of) {
		switch {
		case m.label, m.remain:
		case m.isBlock:
			inner := leastBlock(m.name, m.content)
			if m.name != "dynamic_application_sizing" {
				with(withBlock(inner))
			}
			with(withBlock(inner, inner))
			for _, labels := range [][]string{nil, {"x"}, {"x", "y"}} {
				labelled := inner
				labelled.labels = labels
				with(withBlock(labelled))
			}
			for _, value := range []string{`"x"`, `null`, `[]`, `5`} {
				with(body{append(without(content.arguments, m.name), [2]string{m.name, value}), withBlock(inner).blocks[:len(withBlock(inner).blocks)-1]})
			}
			variants(m.content, inner.body, func(changed body) body {
				innermost := inner
				innermost.body = changed
				return wrap(withBlock(innermost))
			}, use)
		default:
			for _, value := range argumentValues {
				with(added(content.arguments, m.name, value))
			}
			with(body{without(content.arguments, m.name), content.blocks})
			with(added(content.arguments, m.name+"x", `"x"`))
			with(body{without(content.arguments, m.name), append([]block{{kind: m.name}}, content.blocks...)})
		}
	}
}

// "refused", or what becomes of each policy.
type verdict map[string]string

func refused() verdict { return verdict{"": "refused"} }

// How the agent takes a file of its configuration (command/agent.go, readConfig).
func agentFileVerdict(path string) verdict {
	loaded, err := config.LoadPaths([]string{path})
	if err != nil {
		return refused()
	}
	// net.Listen (agent/http/server.go), and setupPolicyManager of agent/agent.go.
	if loaded.HTTP.BindPort < 0 || loaded.HTTP.BindPort > 65535 {
		return refused()
	}
	if loaded.Policy.DefaultEvaluationInterval < 0 {
		return refused() // time.NewTicker panics (policy/handler.go)
	}
	for _, source := range loaded.Policy.Sources {
		if source.Enabled != nil && !*source.Enabled && source.Name == "file" {
			return refused() // it reads no files of policies
		}
	}
	return verdict{}
}

// How it takes a file of policies (policy/file/source.go, handleDir; policy/manager.go,
// processMessageAndUpdateHandlers). A panic ends it.
func policyFileVerdict(path string) (taken verdict) {
	defer func() {
		if recover() != nil {
			taken = refused()
		}
	}()
	policies, err := decodeFile(path)
	if err != nil {
		return refused()
	}
	processor := policy.NewProcessor(&policy.ConfigDefaults{}, nil)
	taken = verdict{}
	for name, read := range policies {
		read.ID = "x"
		switch {
		case !read.Enabled && read.Target == nil:
		case !read.Enabled:
			taken[name] = "off"
		case read.Target == nil:
			return refused()
		case read.EvaluationInterval < 0: // time.NewTicker panics
			taken[name] = "invalid"
		case processor.ValidatePolicy(read) != nil || read.Validate() != nil:
			taken[name] = "invalid"
		case !fires(read.Schedule) || slices.ContainsFunc(read.Checks, func(check *sdk.ScalingPolicyCheck) bool { return !fires(check.Schedule) }):
			taken[name] = "invalid"
		case read.Type != sdk.ScalingPolicyTypeCluster && read.Type != sdk.ScalingPolicyTypeHorizontal:
			taken[name] = "invalid" // no check of it runs (policy/handler.go, loadCheckRunners)
		default:
			taken[name] = "valid"
		}
	}
	return taken
}

// The agent accepts a schedule such as "30-0 7 * * *", of which it panics, or that never comes.
func fires(schedule *sdk.ScalingPolicySchedule) (fires bool) {
	if schedule == nil {
		return true
	}
	defer func() { fires = recover() == nil && fires }()
	fires = true
	for _, expression := range []string{schedule.Start, schedule.End} {
		fires = fires && (expression == "" || !cronexpr.MustParse(expression).Next(time.Now()).IsZero())
	}
	return fires
}

func ourVerdict(t *testing.T, kind string, reading ourReading) verdict {
	t.Helper()
	if reading.Error != "" {
		return refused()
	}
	taken := verdict{}
	if kind == "agent" {
		return taken
	}
	var policies []struct {
		Name     string   `json:"name"`
		Enabled  bool     `json:"enabled"`
		Refusals []string `json:"refusals"`
	}
	must(t, json.Unmarshal(reading.Read, &policies))
	for _, read := range policies {
		switch {
		case !read.Enabled:
			taken[read.Name] = "off"
		case len(read.Refusals) > 0:
			taken[read.Name] = "invalid"
		default:
			taken[read.Name] = "valid"
		}
	}
	return taken
}

type fileText struct{ suffix, text string }

func compareVerdicts(t *testing.T, kind string, files []fileText) {
	t.Helper()
	withoutNomadVariables(t)
	directory := t.TempDir()
	paths := make([]string, len(files))
	for i, file := range files {
		paths[i] = filepath.Join(directory, fmt.Sprint(i)+file.suffix)
		must(t, os.WriteFile(paths[i], []byte(file.text), 0o600))
	}
	differ := 0
	for i, reading := range ourReadings(t, kind, paths) {
		ours, agents := ourVerdict(t, kind, reading), agentFileVerdict(paths[i])
		if kind == "policy" {
			agents = policyFileVerdict(paths[i])
		}
		if reflect.DeepEqual(ours, agents) {
			continue
		}
		if differ++; differ <= 25 {
			t.Errorf("we say %v (%s), the agent %v:\n%s", ours, reading.Error, agents, files[i].text)
		}
	}
	t.Logf("%d of %d files differ", differ, len(files))
}

// The grammar is that of the agent's structs: each argument with each value, each block missing, twice,
// with other labels, as an argument.
func TestTheGrammarIsThatOfTheAgentsStructs(t *testing.T) {
	for kind, of := range map[string]reflect.Type{
		"agent":  reflect.TypeFor[config.Agent](),
		"policy": reflect.TypeFor[sdk.FileDecodeScalingPolicies](),
	} {
		t.Run(kind, func(t *testing.T) {
			var files []fileText
			variants(of, body{}, func(whole body) body { return whole }, func(whole body) {
				files = append(files, fileText{".hcl", whole.hcl("")})
				if written := whole.json(); json.Valid([]byte(written)) {
					files = append(files, fileText{".json", written})
				}
			})
			compareVerdicts(t, kind, files)
		})
	}
}

// Files such as people write.
func TestFilesThatPeopleWriteAreJudgedAsByTheAgent(t *testing.T) {
	var agents, policies []fileText
	for _, text := range agentTexts {
		agents = append(agents, fileText{".hcl", text})
	}
	for _, text := range agentJSON {
		agents = append(agents, fileText{".json", text})
	}
	inPolicy := func(text string) {
		policies = append(policies, fileText{".hcl", "scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n" + text +
			"    check \"c\" {\n      strategy \"fixed-value\" {\n        value = 1\n      }\n    }\n    target \"harvester\" {\n    }\n  }\n}\n"})
	}
	for _, cron := range crons {
		inPolicy("    schedule {\n      start = " + strconv.Quote(cron) + "\n      duration = \"1h\"\n    }\n")
		inPolicy("    schedule {\n      start = \"0 7 * * *\"\n      end = " + strconv.Quote(cron) + "\n    }\n")
		inPolicy("    check \"d\" {\n      schedule {\n        start = " + strconv.Quote(cron) + "\n        duration = \"1h\"\n      }\n" +
			"      strategy \"fixed-value\" {\n      }\n    }\n")
	}
	for _, text := range inPolicies {
		inPolicy(text)
	}
	for _, text := range policyTexts {
		policies = append(policies, fileText{".hcl", text})
	}
	t.Run("agent", func(t *testing.T) { compareVerdicts(t, "agent", agents) })
	t.Run("policy", func(t *testing.T) { compareVerdicts(t, "policy", policies) })
}
