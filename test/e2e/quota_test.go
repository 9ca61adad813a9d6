// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Harvester's webhook checks the quotas of its UI on every write of a VM that has no pod and is not Halted
// (harvester/harvester:pkg/util/resourcequota/calculator.go): also on a mark, and on the end of a deletion.
func TestAFullQuotaOfHarvesterHoldsNeitherTheMarkOfAVMThatIsOffNorItsDeletion(t *testing.T) {
	s := harness.Start(t)
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 2)
	off, runs := s.VMs(t)[0].Name(), s.VMs(t)[1].Name()
	shutDown(t, s, off)
	harness.Eventually(t, time.Minute, "KubeVirt has removed the instance of "+off, func() error {
		object, err := s.Kube.Get(harness.VirtualMachines, s.Namespace, off)
		if err == nil && object.Bool("status", "created") {
			err = errors.New("it has one")
		}
		return err
	})
	setHarvestersQuota(t, s, "1Gi")
	harness.Eventually(t, time.Minute, "the quota denies a write of "+off, func() error {
		return deniesByQuota(s, off)
	})

	t.Log("C4: the mark")
	s.Metrics.Want(1)
	harness.Eventually(t, 3*time.Minute, off+" is gone", func() error {
		if left := uids(t, s); len(left) != 1 || left[runs] == "" {
			return fmt.Errorf("VMs: %v", left)
		}
		return nil
	})

	t.Log("C4: the deletion, begun by an operator")
	shutDown(t, s, runs)
	harness.Eventually(t, time.Minute, "the quota denies a write of "+runs, func() error {
		return deniesByQuota(s, runs)
	})
	must(t, s.Kube.Delete(harness.VirtualMachines, s.Namespace, runs))
	s.Metrics.Want(0)
	harness.Eventually(t, 4*time.Minute, runs+" is gone", func() error {
		if vms := s.VMs(t); len(vms) > 0 {
			return fmt.Errorf("%s is %s", vms[0].Name(), vms[0].Str("status", "printableStatus"))
		}
		return nil
	})
	if lines := fmt.Sprint(agent.PluginLines(t)); !strings.Contains(lines, "set its run strategy to Halted") {
		t.Error("the plugin did not halt it: the quota did not hold it")
	}
}

// shutDown ends the guest of a VM from within, and waits until KubeVirt and Nomad have noticed.
func shutDown(t *testing.T, s *harness.Stack, vm string) {
	t.Helper()
	must(t, powerOff(s, vm))
	awaitStatus(t, s, vm, "Stopped")
	awaitNodeStatus(t, s, vm, "down")
}

// setHarvestersQuota limits the memory of all pods of the namespace.
func setHarvestersQuota(t *testing.T, s *harness.Stack, memory string) {
	t.Helper()
	limit := harness.Object{"field.cattle.io/resourceQuota": fmt.Sprintf(`{"limit":{"limitsMemory":%q}}`, memory)}
	namespaces := harness.Resource{Version: "v1", Plural: "namespaces"}
	must1(s.Kube.Patch(namespaces, "", s.Namespace, harness.Object{"metadata": harness.Object{"annotations": limit}}))(t)
	quota := harness.Object{
		"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": harness.Object{"name": "default", "namespace": s.Namespace, "labels": harness.Object{
			"resourcequota.management.cattle.io/default-resource-quota": "true"}},
		"spec": harness.Object{"hard": harness.Object{"limits.memory": memory}},
	}
	must1(s.Kube.Create(quotas, s.Namespace, quota))(t)
}

func deniesByQuota(s *harness.Stack, vm string) error {
	change := harness.Object{"metadata": harness.Object{"annotations": harness.Object{"e2e": "asks"}}}
	_, err := s.Kube.Patch(harness.VirtualMachines, s.Namespace, vm, change)
	if err == nil {
		return errors.New("it was accepted")
	}
	if !strings.Contains(err.Error(), "insufficient resources") {
		return err
	}
	return nil
}
