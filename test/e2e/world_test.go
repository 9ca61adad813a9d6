// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Tests the environment without the plugin: the plugin's tests depend on it.
func TestAVirtualMachineBecomesANomadNodeAndGoesWithoutTrace(t *testing.T) {
	s := harness.Start(t)
	plugin := s.PluginKube

	const name = "clients-x7k2p"
	if _, err := plugin.Create(harness.Secrets, s.Namespace, harness.SampleSecret(s.Namespace, name)); err != nil {
		t.Fatal(err)
	}
	vm, err := plugin.Create(harness.VirtualMachines, s.Namespace, harness.SampleVM(s.Namespace, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.Patch(harness.Secrets, s.Namespace, name+"-cloudinit", harness.OwnedBy(vm)); err != nil {
		t.Fatal(err)
	}

	var node harness.Object
	harness.Eventually(t, 2*time.Minute, "the VM is a ready node", func() error {
		node, err = s.Nomad.Node(name)
		if err == nil && node.Str("Status") != "ready" {
			err = fmt.Errorf("node %s is %q", name, node.Str("Status"))
		}
		return err
	})
	if hostname := node.Str("Attributes", "unique.hostname"); hostname != name {
		t.Errorf("unique.hostname is %q, want the VM's name", hostname)
	}
	if uuid := node.Str("Meta", "harvester_vm_uuid"); uuid != harness.SampleUID {
		t.Errorf("meta.harvester_vm_uuid is %q", uuid)
	}
	instance, err := plugin.Get(harness.Instances, s.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if address := instance.List("status", "interfaces")[0].Str("ipAddress"); node.Str("HTTPAddr") != address+":4646" {
		t.Errorf("the node says it is at %q, its instance at %q", node.Str("HTTPAddr"), address)
	}
	harness.Eventually(t, 10*time.Second, "KubeVirt says Running", func() error {
		vm, err := plugin.Get(harness.VirtualMachines, s.Namespace, name)
		if err == nil && (vm.Str("status", "printableStatus") != "Running" || !vm.Bool("status", "ready")) {
			err = fmt.Errorf("status %v", vm.At("status"))
		}
		return err
	})

	if err := plugin.Delete(harness.VirtualMachines, s.Namespace, name); err != nil {
		t.Fatal(err)
	}
	for what, resource := range map[string]harness.Resource{
		"VMs": harness.VirtualMachines, "instances": harness.Instances, "claims": harness.Claims, "secrets": harness.Secrets,
	} {
		harness.Eventually(t, time.Minute, "no "+what, func() error {
			left, err := s.Kube.List(resource, s.Namespace, "")
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("%d left", len(left))
			}
			return err
		})
	}
	harness.Eventually(t, time.Minute, "the node is down", func() error {
		node, err := s.Nomad.Get("/v1/node/" + node.Str("ID"))
		if err == nil && node.Str("Status") != "down" {
			err = fmt.Errorf("node is %s", node.Str("Status"))
		}
		return err
	})
	if _, refused := s.Asked(t); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}
