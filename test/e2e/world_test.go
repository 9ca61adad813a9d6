// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Tests the environment without the plugin: the plugin's tests depend on it.
func TestAVirtualMachineBecomesANomadNodeAndGoesWithoutTrace(t *testing.T) {
	s := harness.Start(t)
	plugin := s.PluginKube

	story := watchStory(t, s)
	const name = "clients-x7k2p"
	must1(plugin.Create(harness.Secrets, s.Namespace, harness.SampleSecret(s.Namespace, name)))(t)
	vm, err := plugin.Create(harness.VirtualMachines, s.Namespace, harness.SampleVM(s.Namespace, name))
	if err != nil {
		t.Fatal(err)
	}
	must1(plugin.Patch(harness.Secrets, s.Namespace, name+"-cloudinit", harness.OwnedBy(vm)))(t)

	node := awaitReady(t, s, name)
	if hostname := node.Str("Attributes", "unique.hostname"); hostname != name {
		t.Errorf("unique.hostname is %q, want the VM's name", hostname)
	}
	if uuid := node.Str("Meta", "harvester_vm_uuid"); uuid != harness.SampleUID {
		t.Errorf("meta.harvester_vm_uuid is %q", uuid)
	}
	instance := must1(plugin.Get(harness.Instances, s.Namespace, name))(t)
	if address := instance.List("status", "interfaces")[0].Str("ipAddress"); node.Str("HTTPAddr") != address+":4646" {
		t.Errorf("the node says it is at %q, its instance at %q", node.Str("HTTPAddr"), address)
	}
	harness.Eventually(t, 10*time.Second, "KubeVirt says Running", func() error { return running(plugin, s.Namespace, name) })

	must(t, plugin.Delete(harness.VirtualMachines, s.Namespace, name))
	for _, resource := range []harness.Resource{harness.VirtualMachines, harness.Instances, harness.Claims, harness.Secrets} {
		harness.Eventually(t, time.Minute, "no "+resource.Plural, func() error { return noneLeft(s, resource) })
	}
	harness.Eventually(t, time.Minute, "the node is down", func() error {
		node, err := s.Nomad.Get("/v1/node/" + node.Str("ID"))
		if err == nil && node.Str("Status") != "down" {
			err = fmt.Errorf("node is %s", node.Str("Status"))
		}
		return err
	})
	story.check(t)
	if _, refused := s.Asked(t); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// noneLeft returns nil if the stack's namespace has no object of these kinds.
func noneLeft(s *harness.Stack, resources ...harness.Resource) error {
	for _, resource := range resources {
		left, err := s.Kube.List(resource, s.Namespace, "")
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d %s are left", len(left), resource.Plural)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Harvester's finalizer comes to a VM after its claims: a VM that is deleted before leaves them. Nothing of the
// plugin deletes that early; "harvester gc" removes what somebody else's deletion left.
func TestVolumesOfAVMThatWasDeletedTooEarlyAreCollected(t *testing.T) {
	s := harness.Start(t)
	const name = "clients-x7k2p"
	release := s.Hold(t, harness.Write{Account: "harvester", Operation: "UPDATE", Resource: harness.VirtualMachines})
	must(t, s.Kube.Apply([]harness.Object{harness.SampleSecret(s.Namespace, name), harness.SampleVM(s.Namespace, name)}))
	harness.Eventually(t, time.Minute, "a claim", func() error { return someLeft(s, harness.Claims) })
	must(t, s.Kube.Delete(harness.VirtualMachines, s.Namespace, name))
	harness.Eventually(t, 2*time.Minute, "no VM is left", func() error { return noneLeft(s, harness.VirtualMachines) })
	release()
	must(t, someLeft(s, harness.Claims))
	out := s.CollectGarbage(t)
	harness.Eventually(t, time.Minute, "neither claims nor Secrets are left", func() error {
		if err := noneLeft(s, harness.Claims, harness.Secrets); err != nil {
			return fmt.Errorf("%w; harvester gc said: %s", err, out)
		}
		return nil
	})
}

// story is what happens to a namespace's VM, its instance and its claim, in order.
type story struct {
	lock   sync.Mutex
	events []event
}

// event happened at a resource version: the kinds of one cluster share one order.
type event struct {
	at   int
	text string
}

func watchStory(t *testing.T, s *harness.Stack) *story {
	t.Helper()
	told := &story{}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for what, resource := range map[string]harness.Resource{
		"VM": harness.VirtualMachines, "instance": harness.Instances, "claim": harness.Claims,
	} {
		states := must1(s.Kube.Watch(ctx, resource, s.Namespace))(t)
		go func() {
			seen := map[string]bool{}
			for state := range states {
				told.add(seen, what, state)
			}
		}()
	}
	return told
}

// add notes what is new in a state: "VM finalizer kubevirt.io/…", "VM Starting", "VM deleted", "VM without finalizer …", "VM gone".
func (s *story) add(seen map[string]bool, what string, state harness.Object) {
	s.lock.Lock()
	defer s.lock.Unlock()
	version, _ := strconv.Atoi(state.Str("metadata", "resourceVersion"))
	note := func(text string) {
		if !seen[text] {
			seen[text] = true
			s.events = append(s.events, event{version, what + " " + text})
		}
	}
	if state.Annotation(harness.GoneAnnotation) != "" {
		note("gone")
		return
	}
	note("made")
	for _, finalizer := range state.Finalizers() {
		note("finalizer " + finalizer)
	}
	for text := range seen {
		if finalizer, is := strings.CutPrefix(text, "finalizer "); is && !slices.Contains(state.Finalizers(), finalizer) {
			note("without finalizer " + finalizer)
		}
	}
	if state.Terminating() {
		note("deleted")
	} else if status := state.Str("status", "printableStatus") + state.Str("status", "phase"); status != "" {
		note(status)
	}
}

// What Harvester's and KubeVirt's controllers do in which order: the plugin and the simulator rely on it.
var orders = [][]string{
	{"VM made", "claim made", "VM finalizer " + harvestersFinalizer, "VM Running", "VM deleted", "claim deleted", "claim gone", "VM gone"},
	{"VM made", "VM Stopped", "VM Starting", "VM Running"},
	{"VM finalizer " + kubevirtsFinalizer, "instance made", "instance Running", "VM Running"},
	{"VM deleted", "VM without finalizer " + harvestersFinalizer, "VM gone"}, // KubeVirt's goes last
	{"VM deleted", "instance deleted", "instance gone", "VM gone"},
}

const (
	kubevirtsFinalizer  = "kubevirt.io/virtualMachineControllerFinalize"
	harvestersFinalizer = "wrangler.cattle.io/VMController.CleanupPVCAndSnapshot"
)

func (s *story) check(t *testing.T) {
	t.Helper()
	s.lock.Lock()
	defer s.lock.Unlock()
	slices.SortStableFunc(s.events, func(a, b event) int { return a.at - b.at })
	var told []string
	for _, event := range s.events {
		told = append(told, event.text)
	}
	for _, order := range orders {
		last := -1
		for _, event := range order {
			at := slices.Index(told, event)
			if at < last || at < 0 {
				t.Errorf("%q is not where it is expected, in %q; it happened:\n%s", event, order, strings.Join(told, "\n"))
				break
			}
			last = at
		}
	}
}
