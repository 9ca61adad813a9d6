// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestKubeVirtAndHarvesterAdmit(t *testing.T) {
	s := harness.Start(t)
	t.Run("every VM that the plugin posts", func(t *testing.T) { takesWhatIsPosted(t, s) })
	t.Run("no VM that is wrong", func(t *testing.T) { refusesWhatIsWrong(t, s) })
}

// Each file has the objects that the plugin posts for one VM: its Secret and itself.
func takesWhatIsPosted(t *testing.T, s *harness.Stack) {
	t.Helper()
	for _, path := range postedFiles(t) {
		objects := readObjects(t, path)
		if !slices.ContainsFunc(objects, func(o harness.Object) bool { return o.Str("kind") == "VirtualMachine" }) {
			t.Errorf("%s has no VM", path)
		}
		for _, object := range objects {
			object.Obj("metadata")["namespace"] = s.Namespace
		}
		for _, trial := range []bool{true, false} {
			for _, object := range objects {
				what := fmt.Sprintf("%s: %s (trial: %v)", filepath.Base(path), object.Str("kind"), trial)
				response, body, err := s.Kube.Post(harness.ResourceOf(object), s.Namespace, object, trial)
				switch {
				case err != nil:
					t.Errorf("%s: %v", what, err)
				case response.StatusCode != http.StatusCreated:
					t.Errorf("%s: %d %s", what, response.StatusCode, body)
				case len(response.Header.Values("Warning")) > 0:
					t.Errorf("%s: warning %q", what, response.Header.Values("Warning"))
				}
			}
		}
		for _, object := range objects { // another file may use the names again
			if err := s.Kube.Delete(harness.ResourceOf(object), s.Namespace, object.Name()); err != nil {
				t.Error(err)
			}
			harness.Eventually(t, time.Minute, object.Name()+" is gone", func() error { return gone(s, object) })
		}
	}
}

const (
	devices   = "/spec/template/spec/domain/devices"
	decoder   = `VirtualMachine in version "v1" cannot be handled as a VirtualMachine: strict decoding error: `
	invalid   = `VirtualMachine.kubevirt.io "clients-7f3k2" is invalid: `
	validator = `admission webhook "virtualmachine-validator.kubevirt.io" denied the request: `

	harvesterMutator = `admission webhook "mutator.harvesterhci.io" denied the request: `
)

// wrong are changes of a good VM that must be refused, and by whom.
var wrong = []struct {
	name        string
	path, value string // JSON pointer, and the JSON that is put there
	code        int
	by, because string // how the message begins, and what else is in it
}{
	{"an unknown field", "/spec/template/spec/hostName", `"x"`, 400, decoder, `unknown field "spec.template.spec.hostName"`},
	{"a wrong type", "/spec/template/spec/hostname", `7`, 500, harvesterMutator, "cannot unmarshal number into Go struct field VirtualMachineInstanceTemplateSpec.spec.template.spec.hostname"},
	{"secure boot without SMM", "/spec/template/spec/domain/features/smm", `{"enabled":false}`, 422, validator, "SecureBoot requires SMM"},
	{"BIOS besides EFI", "/spec/template/spec/domain/firmware/bootloader/bios", `{}`, 422, validator, "has both EFI and BIOS configured"},
	{"a boot order twice", devices + "/disks/1/bootOrder", `1`, 422, validator, "already set for a different device"},
	{"a boot order of 0", devices + "/disks/1/bootOrder", `0`, 422, validator, "must have a boot order > 0"},
	{"a disk without a volume", devices + "/disks/-", `{"name":"data","disk":{"bus":"virtio"}}`, 422, validator, "disks[3].Name 'data' not found"},
	{"a volume twice", "/spec/template/spec/volumes/1/name", `"disk-0"`, 422, validator, "must not have the same Name"},
	{"an unknown bus", devices + "/disks/0/disk/bus", `"floppy"`, 422, validator, "unrecognized bus floppy"},
	{"an interface without a network", devices + "/interfaces/-", `{"name":"nic-2","model":"virtio","bridge":{}}`, 422, validator, "nic-2"},
	{"an unknown interface model", devices + "/interfaces/0/model", `"ne3000"`, 422, validator, "uses model ne3000 that is not supported"},
	{"a MAC address that is none", devices + "/interfaces/1/macAddress", `"52:54:00"`, 422, validator, "malformed MAC address"},
	{"an unknown run strategy", "/spec/runStrategy", `"WaitAsReceiver"`, 422, validator, "Invalid RunStrategy (WaitAsReceiver)"},
	{"a host name that DNS does not know", "/spec/template/spec/hostname", `"a_b"`, 422, validator, "DNS_LABEL"},
	{"an unknown eviction strategy", "/spec/template/spec/evictionStrategy", `"Never"`, 422, validator, "unrecognized option: Never"},
	{"an unknown machine type", "/spec/template/spec/domain/machine/type", `"isapc"`, 422, validator, "isapc (allowed values: [q35* pc-q35*])"},
	{"dedicated CPUs whose count is not the limit", "/spec/template/spec/domain/cpu/cores", `3`, 422, validator, "must not be provided at the same time with"},
	{"a network that is not there", "/spec/template/spec/networks/1/multus/networkName", `"default/nowhere"`, 500, harvesterMutator, `"nowhere" not found`},
	{"more disks than KubeVirt takes", devices + "/disks", many(`{"name":"disk-0"}`), 422, invalid, "domain.devices.disks: Too many: 257: must have at most 256 items"},
	{"more volumes than KubeVirt takes", "/spec/template/spec/volumes", many(`{"name":"disk-0"}`), 422, invalid, "volumes: Too many: 257: must have at most 256 items"},
	{
		"annotations of more than 256 KiB", "/metadata/annotations", `{"example.org/a":"` + strings.Repeat("a", 256<<10) + `"}`,
		422, invalid, "metadata.annotations: Too long: may not be more than 262144 bytes",
	},
	{"a cloud-init volume without data", "/spec/template/spec/volumes/2/cloudInitNoCloud", `{}`, 422, validator, "must have at least one userdatasource"},
}

// many is a list of 257 equal elements.
func many(element string) string {
	return "[" + strings.Repeat(element+",", 256) + element + "]"
}

func refusesWhatIsWrong(t *testing.T, s *harness.Stack) {
	t.Helper()
	for _, test := range wrong {
		vm := readObjects(t, filepath.Join("testdata", "posted", "devices.json"))[0]
		vm.Obj("metadata")["namespace"] = s.Namespace
		var value any
		must(t, json.Unmarshal([]byte(test.value), &value))
		put(t, map[string]any(vm), test.path, value)
		response, body, err := s.Kube.Post(harness.VirtualMachines, s.Namespace, vm, true)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var status harness.Object
		must(t, json.Unmarshal(body, &status))
		message := status.Str("message")
		if response.StatusCode != test.code || !strings.HasPrefix(message, test.by) || !strings.Contains(message, test.because) {
			t.Errorf("%s: %d %s, want %d %s…%s…", test.name, response.StatusCode, message, test.code, test.by, test.because)
		}
	}
}

// put sets the value at a JSON pointer; "-" appends to a list.
func put(t *testing.T, document any, pointer string, value any) {
	t.Helper()
	key, rest, more := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	switch parent := document.(type) {
	case map[string]any:
		list, isList := parent[key].([]any)
		switch {
		case !more:
			parent[key] = value
		case isList && rest == "-":
			parent[key] = append(list, value)
		case parent[key] == nil:
			t.Fatalf("there is no %s to change", key)
		default:
			put(t, parent[key], rest, value)
		}
	case []any:
		index, err := strconv.Atoi(key)
		if err != nil || index >= len(parent) {
			t.Fatalf("there is no element %s", key)
		}
		put(t, parent[index], rest, value)
	}
}

// postedFiles returns the files of the plugin's own tests, which compare them with
// what the plugin builds.
func postedFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root, "test", "harvester", "golden", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	return files
}

func readObjects(t *testing.T, path string) []harness.Object {
	t.Helper()
	data := must1(os.ReadFile(path))(t)
	var objects []harness.Object
	var changed struct {
		Base    string
		Changes []harness.Object // merge patches of the objects of the base
	}
	if json.Unmarshal(data, &changed) == nil {
		objects = readObjects(t, filepath.Join(filepath.Dir(path), changed.Base+".json"))
		for i, changes := range changed.Changes {
			merge(objects[i], changes)
		}
	} else if err := json.Unmarshal(data, &objects); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(objects) == 0 {
		t.Fatalf("%s has no objects", path)
	}
	return objects
}

// merge applies a merge patch (RFC 7386).
func merge(object, changes map[string]any) {
	for key, value := range changes {
		inner, isObject := value.(map[string]any)
		into, wasObject := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject && wasObject:
			merge(into, inner)
		default:
			object[key] = value
		}
	}
}

// gone returns nil if an object is not there.
func gone(s *harness.Stack, object harness.Object) error {
	_, err := s.Kube.Get(harness.ResourceOf(object), s.Namespace, object.Name())
	if refused := new(harness.APIError); errors.As(err, &refused) && refused.Code == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("it is there: %v", err)
}
