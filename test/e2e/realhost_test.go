// SPDX-License-Identifier: Apache-2.0

//go:build guest

// A host that nobody plays: kubelet, containerd, KubeVirt's virt-handler and virt-launcher, libvirt, QEMU in emulation.

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// The VM is the plugin's, and KubeVirt makes a machine of it. Its network is the pods' (networks = "management"): in a
// bridge KubeVirt needs a kind of device that a kernel may lack.
func TestOnAHostThatIsRealAVMBootsJoinsMigratesNowhereAndShutsDown(t *testing.T) {
	s := harness.StartWith(t, harness.NomadOptions{Guests: true, RealHost: true})
	s.JoinTimeout, s.DrainDeadline = guestJoins, 2*time.Minute
	s.PolicyKeys = map[string]string{
		"cpu_request": "2", "memory_request": "1Gi", "networks": "management", "data_disks": "1Gi", "termination_grace_period": "5m",
	}
	host := s.StartRealHost(t)
	agent := s.StartAgent(t)
	began := time.Now()
	s.Reach(t, guestJoins, 1)
	t.Logf("its node was ready after %v", time.Since(began).Round(time.Second))

	vm := s.VMs(t)[0]
	uuid := vm.Str("spec", "template", "spec", "domain", "firmware", "uuid")
	if machine := host.Guests(t)[uuid]; !strings.Contains(machine, " -accel tcg ") || !strings.Contains(machine, " -smp 2,") {
		t.Errorf("the host runs %q, want QEMU with the VM's UUID %s and 2 processors", host.Guests(t), uuid)
	}
	node := must1(s.Nomad.Node(vm.Name()))(t)
	if node.Str("Attributes", "unique.hostname") != vm.Name() || node.Str("Meta", "harvester_vm_uuid") != uuid {
		t.Errorf("the node is %v with %v, want %s with %s", node.At("Attributes", "unique.hostname"), node.At("Meta"), vm.Name(), uuid)
	}
	harness.Eventually(t, 2*time.Minute, "virt-handler tells what the guest's agent says", func() error {
		instance, err := s.Kube.Get(harness.Instances, s.Namespace, vm.Name())
		if err == nil && (instance.Str("status", "guestOSInfo", "id") != "debian" || instance.Str("status", "nodeName") != host.Name) {
			err = fmt.Errorf("%v", instance.At("status"))
		}
		return err
	})

	s.Migrate(t, vm.Name())
	harness.Eventually(t, time.Minute, "the pod at the migration's target has no host", func() error {
		pods, err := s.Kube.List(harness.Pods, s.Namespace, "kubevirt.io=virt-launcher")
		if err == nil && !slices.ContainsFunc(pods, func(pod harness.Object) bool {
			return slices.ContainsFunc(pod.List("status", "conditions"), func(c harness.Object) bool { return c.Str("reason") == "Unschedulable" })
		}) {
			err = errors.New("no pod is unschedulable")
		}
		return err
	})
	s.StaysSettled(t, 1)

	began = time.Now()
	s.Reach(t, guestLeaves, 0)
	t.Logf("it was gone after %v", time.Since(began).Round(time.Second))
	if guests := host.Guests(t); len(guests) > 0 {
		t.Errorf("the host still runs %v", guests)
	}
	if said := host.HandlerSays(t, "Domain status: Shutoff"); !strings.Contains(said, "reason: Shutdown") {
		t.Errorf("virt-handler says %q, want that the guest has shut down", said)
	}
	checkRequests(t, s)
	agent.StopInOrder(t)
}
