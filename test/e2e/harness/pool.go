// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	poolLabel = "nomad-harvester-autoscaler/pool"
	// MarkAnnotation is on a VM that is about to be removed.
	MarkAnnotation = "nomad-harvester-autoscaler/scale-in"
)

// VMs returns the virtual machines of the namespace.
func (s *Stack) VMs(t testing.TB) []Object {
	t.Helper()
	return must[[]Object](t, "virtual machines")(s.Kube.List(VirtualMachines, s.Namespace, ""))
}

// WasReady returns whether the plugin has recorded that a VM's node was ready.
func WasReady(vm Object) bool {
	at := vm.Annotation("nomad-harvester-autoscaler/ready-at")
	return at != "" && at != "not-yet"
}

// Settled returns nil if there are exactly count working machines and no leftovers:
// no surplus VM, Secret, claim, drain, mark or ineligible node.
func (s *Stack) Settled(count int) error {
	vms, err := s.Kube.List(VirtualMachines, s.Namespace, "")
	if err != nil {
		return err
	}
	if len(vms) != count {
		return fmt.Errorf("%s VMs, want %d", names(vms), count)
	}
	links := map[string]bool{}
	for _, vm := range vms {
		switch {
		case vm.Terminating():
			return fmt.Errorf("VM %s is terminating", vm.Name())
		case vm.Annotation(MarkAnnotation) != "":
			return fmt.Errorf("VM %s is marked: %s", vm.Name(), vm.Annotation(MarkAnnotation))
		case vm.Annotation("nomad-harvester-autoscaler/joined-at") == "":
			return fmt.Errorf("VM %s has not joined", vm.Name())
		case !WasReady(vm):
			return fmt.Errorf("VM %s was not recorded as ready", vm.Name())
		case s.tellsKeys && vm.Annotation("nomad-harvester-autoscaler/nomad-cluster") == "":
			return fmt.Errorf("VM %s does not say to which Nomad cluster it belongs", vm.Name())
		}
		links[vm.Annotation("nomad-harvester-autoscaler/nomad-node-id")] = true
	}
	disks := 1
	if data := s.PolicyKeys["data_disks"]; data != "" {
		disks += len(strings.Split(data, ","))
	}
	for resource, want := range map[Resource]int{Instances: count, Claims: count * disks, Secrets: count} {
		objects, err := s.Kube.List(resource, s.Namespace, "")
		if err != nil {
			return err
		}
		if len(objects) != want {
			return fmt.Errorf("%s %s, want %d", names(objects), resource.Plural, want)
		}
	}
	nodes, err := s.Nomad.List("/v1/nodes")
	if err != nil {
		return err
	}
	if len(nodes) != count {
		return fmt.Errorf("%d nodes, want %d: %s", len(nodes), count, statesOf(nodes))
	}
	for _, node := range nodes {
		switch {
		case node.Str("Status") != "ready", node.Bool("Drain"), node.Str("SchedulingEligibility") != "eligible":
			return errors.New(statesOf([]Object{node}))
		case !links[node.Str("ID")]:
			return fmt.Errorf("no VM says that node %s is its", node.Str("Name"))
		}
	}
	return nil
}

// statesOf returns what a test has to know of nodes that should not be there.
func statesOf(nodes []Object) string {
	var states []string
	for _, node := range nodes {
		states = append(states, fmt.Sprintf("node %s is %s, %s, drain %v, last drain %v", node.Str("Name"),
			node.Str("Status"), node.Str("SchedulingEligibility"), node.Bool("Drain"), node.At("LastDrain")))
	}
	return strings.Join(states, "; ")
}

// AwaitSettled waits until Settled returns nil and continues to for a while.
func (s *Stack) AwaitSettled(t testing.TB, limit time.Duration, count int) {
	t.Helper()
	Eventually(t, limit, fmt.Sprintf("%d machines and nothing else", count), func() error { return s.Settled(count) })
	s.StaysSettled(t, count)
}

// Reach lets the policy want so many VMs, and waits until the pool has settled there.
func (s *Stack) Reach(t testing.TB, limit time.Duration, count int) {
	t.Helper()
	s.Metrics.Want(count)
	s.AwaitSettled(t, limit, count)
}

// StaysSettled checks Settled during two full evaluations of the policy: the agent
// would act in them if there were anything to do.
func (s *Stack) StaysSettled(t testing.TB, count int) {
	t.Helper()
	s.DuringEvaluations(t, 3, func() {
		if err := s.Settled(count); err != nil {
			t.Fatalf("%d machines and nothing else: %v", count, err)
		}
	})
}

// DuringEvaluations checks again and again until the agent has asked for its policy's metrics so many times.
func (s *Stack) DuringEvaluations(t testing.TB, times int64, check func()) {
	t.Helper()
	before := s.Metrics.asked.Load()
	Eventually(t, time.Minute, "the agent evaluates the policy", func() error {
		check()
		if asked := s.Metrics.asked.Load() - before; asked < times {
			return fmt.Errorf("%d questions for metrics", asked)
		}
		return nil
	})
}

// LeaseHolders returns the holders of the Leases of the namespace.
func (s *Stack) LeaseHolders(t testing.TB) []string {
	t.Helper()
	var holders []string
	for _, lease := range must[[]Object](t, "leases")(s.Kube.List(Leases, s.Namespace, "")) {
		if holder := lease.Str("spec", "holderIdentity"); holder != "" {
			holders = append(holders, holder)
		}
	}
	return holders
}
