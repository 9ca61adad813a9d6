// SPDX-License-Identifier: Apache-2.0

// What tests ask of a pool's VMs and their nodes.

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// powerOff ends the guest of a VM from within.
func powerOff(s *harness.Stack, vm string) error {
	for _, machine := range s.Machines.Running() {
		if machine.Name == vm {
			return machine.PowerOff()
		}
	}
	return errors.New("it has no machine")
}

// uids returns the VMs' uids, by name.
func uids(t *testing.T, s *harness.Stack) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, vm := range s.VMs(t) {
		found[vm.Name()] = vm.UID()
	}
	return found
}

// running returns nil if KubeVirt says so of a VM.
func running(kube *harness.Kube, namespace, vm string) error {
	object, err := kube.Get(harness.VirtualMachines, namespace, vm)
	if err == nil && (object.Str("status", "printableStatus") != "Running" || !object.Bool("status", "ready")) {
		err = fmt.Errorf("status %v", object.At("status"))
	}
	return err
}

func awaitStatus(t *testing.T, s *harness.Stack, vm, status string) {
	t.Helper()
	harness.Eventually(t, time.Minute, vm+" is "+status, func() error {
		object, err := s.Kube.Get(harness.VirtualMachines, s.Namespace, vm)
		if is := object.Str("status", "printableStatus"); err == nil && is != status {
			err = fmt.Errorf("it is %q", is)
		}
		return err
	})
}

func awaitNodeStatus(t *testing.T, s *harness.Stack, name, status string) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the node "+name+" is "+status, func() error {
		nodes, err := s.Nomad.List("/v1/nodes")
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if node.Str("Name") == name && node.Str("Status") == status {
				return nil
			}
		}
		return errors.New("it is not")
	})
}

// vmsOn returns the names of the VMs that run on a host.
func vmsOn(s *harness.Stack, host string) (map[string]bool, error) {
	instances, err := s.Kube.List(harness.Instances, s.Namespace, "")
	names := map[string]bool{}
	for _, instance := range instances {
		if instance.Str("status", "nodeName") == host {
			names[instance.Name()] = true
		}
	}
	return names, err
}
