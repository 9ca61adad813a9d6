// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad-autoscaler/sdk"
)

// What a version writes on objects, which any other version may have to finish. The files below
// test/recorded, one directory for each version, are what this version and unit tests are compared with,
// so that no executable of that version is needed.

const recordedFiles = "../recorded"

// The annotations of an object, or the metadata of a drain, by the name of the file.
type recording map[string]map[string]string

func TestC10_this_version_writes_everything_that_earlier_ones_wrote(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordedFiles, "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing was recorded: %v", err)
	}
	written := recordingOf(t, &version{name: "this version", binary: realPlugin})
	for _, file := range files {
		earlier, name := filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".json")
		got, want := shapeOf("", written[name]), shapeOf("", readRecorded(t, earlier, name))
		if !includes(got, want) {
			t.Errorf("%s: this version writes\n%v\n%s wrote\n%v", name, got, earlier, want)
		}
	}
}

func readRecorded(t *testing.T, version, name string) map[string]string {
	t.Helper()
	path := filepath.Join(recordedFiles, version, name+".json")
	text, err := os.ReadFile(path)
	recorded := map[string]string{}
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil {
		t.Fatalf("%v: scripts/test --only upgrade, with HARVESTER_UPDATE_RECORDED=1 in its environment, writes it", err)
	}
	return recorded
}

// Whether every member of `part` is in `whole`, with the same type.
func includes(whole, part any) bool {
	members, isObject := part.(map[string]any)
	if !isObject {
		return reflect.DeepEqual(whole, part)
	}
	object, isObject := whole.(map[string]any)
	for name, member := range members {
		if inner, has := object[name]; !has || !includes(inner, member) {
			return false
		}
	}
	return isObject
}

// Members and types of a value; a text that is a JSON object counts as one.
func shapeOf(key string, value any) any {
	switch value := value.(type) {
	case map[string]string:
		shape := map[string]any{}
		for key, text := range value {
			shape[key] = shapeOf(key, text)
		}
		return shape
	case map[string]any:
		shape := map[string]any{}
		for member, inner := range value {
			if key == "create" {
				member = "a name"
			}
			shape[member] = shapeOf(member, inner)
		}
		return shape
	case []any:
		if len(value) == 0 {
			return "[]"
		}
		return []any{shapeOf("", value[0])}
	case string:
		var object map[string]any
		if json.Unmarshal([]byte(value), &object) == nil {
			return shapeOf(key, object)
		}
	}
	return fmt.Sprintf("%T", value)
}

// A pool of a cluster, and one process of a version.
type recordedPool struct {
	*killedPool
	t        *testing.T
	scale    func(count int64) <-chan error
	recorded recording
}

func startRecording(t *testing.T, v *version, into recording, options ...string) *recordedPool {
	t.Helper()
	p := &recordedPool{killedPool: &killedPool{options: options}, t: t, recorded: into}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	client, plugin, err := p.startPlugin(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Kill)
	p.scale = func(count int64) <-chan error {
		result := make(chan error, 1)
		go func() {
			result <- plugin.Scale(sdk.ScalingAction{Count: count, Reason: "recorded", Meta: map[string]any{
				"nomad_policy_id": "c4dbd1b6-7b3b-4f5f-9e0f-0a7d1c3b9a51",
			}}, p.policy(v))
		}()
		return result
	}
	return p
}

// Records the first object of the list whose annotation has the text, as soon as there is one, and none
// of `no`, if given.
func (p *recordedPool) record(name, list, annotation, text string, no ...string) {
	p.t.Helper()
	const prefix = "nomad-harvester-autoscaler/"
	waitUntil(p.t, name, func() bool {
		objects, err := p.list(list)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, object := range objects {
			value, has := object.Metadata.Annotations[prefix+annotation]
			if !has || !strings.Contains(value, text) {
				continue
			}
			if slices.ContainsFunc(no, func(other string) bool {
				_, has := object.Metadata.Annotations[prefix+other]
				return has
			}) {
				continue
			}
			p.recorded[name] = map[string]string{}
			for key, value := range object.Metadata.Annotations {
				if short, ours := strings.CutPrefix(key, prefix); ours {
					p.recorded[name][short] = value
				}
			}
			return true
		}
		return false
	})
}

func (p *recordedPool) recordDrain(name string) {
	p.t.Helper()
	waitUntil(p.t, name, func() bool {
		var nodes []struct {
			LastDrain *struct{ Meta map[string]string }
		}
		if err := get(p.cluster.nomad+"/v1/nodes", &nodes); err != nil {
			p.t.Fatal(err)
		}
		for _, node := range nodes {
			if node.LastDrain != nil && len(node.LastDrain.Meta) != 0 {
				p.recorded[name] = node.LastDrain.Meta
				return true
			}
		}
		return false
	})
}

func recordingOf(t *testing.T, v *version) recording {
	t.Helper()
	recorded := recording{}
	recordScales(t, v, recorded)
	recordBroken(t, v, recorded)
	return recorded
}

func recordScales(t *testing.T, v *version, into recording) {
	everyIdentifier := &version{name: v.name, binary: v.binary,
		policy: []string{"datacenter", "dc1", "node_pool", "default"}}
	p := startRecording(t, everyIdentifier, into)
	growth := p.scale(3)
	p.record("lease-of-growth", ofLeases, "action", `"create":{"`)
	if err := wait(t, "the growth", growth); err != nil {
		t.Fatalf("Scale to 3: %v", err)
	}
	p.record("joined-vm", ofVMs, "nomad-node-id", "")
	p.record("secret", ofSecrets, "action-id", "")
	p.record("lease-at-rest", ofLeases, "last-event", "", "action")
	removal := p.scale(1)
	p.record("vm-of-scale-in", ofVMs, "scale-in", `"scale-in"`)
	p.record("lease-of-scale-in", ofLeases, "action", `"names":["`)
	p.recordDrain("drain-of-scale-in")
	if err := wait(t, "the removal", removal); err != nil {
		t.Fatalf("Scale to 1: %v", err)
	}
}

// Nomad's servers admit no client without a token.
func recordBroken(t *testing.T, v *version, into recording) {
	withoutToken := &version{name: v.name, binary: v.binary, policy: []string{"join_timeout", "3s"}}
	p := startRecording(t, withoutToken, into, "--strict-introduction")
	growth := p.scale(1)
	p.record("broken-vm", ofVMs, "scale-in", `"broken"`)
	if err := wait(t, "the growth", growth); err == nil {
		t.Fatal("a VM joined without a token")
	}
	p.record("lease-of-a-back-off", ofLeases, "back-off", "failures")
}
