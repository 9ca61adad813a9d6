// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"nomad-harvester.local/test/e2e/harness"
)

// Steps returns all steps, in the order in which they must be executed.
func Steps() []Step {
	return slices.Concat(creation, reading, changing, belongings, nodes, idleDrain, waitingWork, busyDrain, removal, afterRemoval)
}

// NewState returns the values for the templates of the steps: a Secret and a VM
// as the plugin creates them, and a job for the VM's node with a task "main" and
// a poststop task.
func NewState(target Target, name string, secret, vm, job any) (map[string]string, error) {
	state := map[string]string{"ns": target.Namespace, "name": name, "forbiddenToken": target.ForbiddenToken}
	object, err := asObject(vm)
	if err != nil {
		return nil, err
	}
	spec, err := asObject(object["spec"])
	if err != nil {
		return nil, err
	}
	metadata, err := asObject(object["metadata"])
	if err != nil {
		return nil, err
	}
	variants := map[string]any{
		"secret": secret, "vm": vm, "job": map[string]any{"Job": job},
		"typo":        with(object, "spec", with(spec, "runStrateggy", "Always")),
		"wrongType":   with(object, "spec", with(spec, "runStrategy", 7)),
		"vmElsewhere": with(object, "metadata", with(metadata, "namespace", "nowhere")),
	}
	for key, value := range variants {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		state[key] = string(data)
	}
	return state, nil
}

func asObject(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, json.Unmarshal(data, &object)
}

// with returns a copy of an object in which one field differs.
func with(object map[string]any, key string, value any) map[string]any {
	copied := map[string]any{}
	for k, v := range object {
		copied[k] = v
	}
	copied[key] = value
	return copied
}

// HarvesterAnswers is the file, in dir, of what Harvester's API answered.
func HarvesterAnswers(dir string) string { return filepath.Join(dir, "harvester-answers.json") }

// NomadAnswers are the files, in dir, of what Nomad of a release answered, such as "1.10". The older releases come first: the
// file of a newer one has only what differs from them.
func NomadAnswers(dir, release string) []string {
	var files []string
	for _, each := range []string{"1.6", "1.10", "1.11"} {
		files = append(files, filepath.Join(dir, "nomad-"+each+"-answers.json"))
		if each == release {
			break
		}
	}
	return files
}

// ReadAnswers reads what WriteAnswers wrote into each of the files. A later file's answer to a step replaces an earlier one's.
func ReadAnswers(paths ...string) ([]Answer, error) {
	var all []Answer
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var answers []Answer
		if err := json.Unmarshal(data, &answers); err != nil {
			return nil, err
		}
		for _, answer := range answers {
			all = slices.DeleteFunc(all, func(a Answer) bool { return a.Step == answer.Step })
		}
		all = append(all, answers...)
	}
	return all, nil
}

// WriteAnswers writes answers to a file.
func WriteAnswers(path string, answers []Answer) error {
	data, err := json.MarshalIndent(answers, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Of returns the answers of one of the two servers.
func Of(api API, answers []Answer) []Answer {
	asked := map[string]API{}
	for _, step := range Steps() {
		asked[step.Name] = step.API
	}
	return slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return asked[a.Step] != api })
}

// AskAll executes all steps for one VM.
func AskAll(target Target) ([]Answer, error) {
	const name = "probe-x7k2p"
	state, err := NewState(target, name, harness.SampleSecret(target.Namespace, name), harness.SampleVM(target.Namespace, name), harness.SampleJob(name))
	if err != nil {
		return nil, err
	}
	return Ask(target, state, Steps())
}
