// SPDX-License-Identifier: Apache-2.0

// What people do to a pool's VMs and hosts by Harvester's own API.

//go:build long

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestWhatPeopleDoToAPoolsVMsCostsNoneOfThem(t *testing.T) {
	s := harness.Start(t)
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 3)
	before := uids(t, s)
	vm := s.VMs(t)[0].Name()

	t.Log("restarted")
	old := instanceOf(t, s, vm).UID()
	index := nodeOf(t, s, vm).Int("ModifyIndex")
	s.ActOnVM(t, vm, "restart", nil)
	harness.Eventually(t, time.Minute, vm+" has a new instance", func() error {
		instance, err := s.Kube.Get(harness.Instances, s.Namespace, vm)
		if err == nil && (instance.UID() == old || instance.Str("status", "phase") != "Running") {
			err = fmt.Errorf("%s is %s", instance.UID(), instance.Str("status", "phase"))
		}
		return err
	})
	awaitNode(t, s, vm, func(node harness.Object) error {
		if node.Int("ModifyIndex") == index || node.Str("Status") != "ready" {
			return fmt.Errorf("it is %s, at index %d", node.Str("Status"), node.Int("ModifyIndex"))
		}
		return nil
	})
	s.AwaitSettled(t, time.Minute, 3)

	t.Log("paused, until Nomad has lost its node, and for a while")
	s.ActOnVM(t, vm, "pause", nil)
	awaitStatus(t, s, vm, "Paused")
	awaitNodeStatus(t, s, vm, "down")
	if out, code := s.Command(t, "status", "-o", "wide"); code != 4 {
		t.Errorf("harvester status ends with %d beside a paused VM:\n%s", code, out)
	}
	stays(t, s, before)
	s.ActOnVM(t, vm, "unpause", nil)
	s.AwaitSettled(t, time.Minute, 3)

	t.Log("migrated")
	from := instanceOf(t, s, vm).Str("status", "nodeName")
	s.ActOnVM(t, vm, "migrate", harness.Object{"nodeName": ""})
	harness.Eventually(t, time.Minute, vm+" runs on another host", func() error {
		if host := instanceOf(t, s, vm).Str("status", "nodeName"); host == from {
			return fmt.Errorf("it is on %s", host)
		}
		return nil
	})
	s.AwaitSettled(t, time.Minute, 3)

	t.Log("cloned: the copy is not the pool's")
	s.ActOnVM(t, vm, "clone", harness.Object{"targetVm": "copy", "runStrategy": "Halted"})
	awaitStatus(t, s, "copy", "Stopped")
	stays(t, s, before)
	if out, _ := s.Command(t, "gc", "--dry-run", "--set", "namespace="+s.Namespace); !containsAll(out, []string{": nothing to do\n"}) {
		t.Errorf("harvester gc beside a clone:\n%s", out)
	}
	must(t, s.Kube.Delete(harness.VirtualMachines, s.Namespace, "copy"))
	for _, claim := range must1(s.Kube.List(harness.Claims, s.Namespace, ""))(t) {
		if strings.HasPrefix(claim.Name(), "copy-") { // whoever deletes a clone decides about its volumes
			must(t, s.Kube.Delete(harness.Claims, s.Namespace, claim.Name()))
		}
	}
	s.AwaitSettled(t, time.Minute, 3)

	t.Log("made a template of")
	s.ActOnVM(t, vm, "createTemplate", harness.Object{"name": "worker-" + s.Namespace, "description": "", "withData": false})
	harness.Eventually(t, time.Minute, "the template is there", func() error {
		_, err := s.Kube.Get(harness.Resource{Group: "harvesterhci.io", Version: "v1beta1", Plural: "virtualmachinetemplates"}, s.Namespace, "worker-"+s.Namespace)
		return err
	})
	stays(t, s, before)

	for _, end := range []struct {
		name string
		stop func() error
	}{
		{"stopped", func() error { s.ActOnVM(t, vm, "stop", nil); return nil }},
		{"switched off by its guest", func() error { return powerOff(s, vm) }},
		{"without its instance, which somebody deleted", func() error { return s.Kube.Delete(harness.Instances, s.Namespace, vm) }},
	} {
		t.Log(end.name + ", and started again")
		must(t, end.stop())
		awaitStatus(t, s, vm, "Stopped")
		awaitNodeStatus(t, s, vm, "down")
		stays(t, s, before)
		s.ActOnVM(t, vm, "start", nil)
		harness.Eventually(t, time.Minute, vm+" runs", func() error { return running(s.Kube, s.Namespace, vm) })
		awaitNodeStatus(t, s, vm, "ready")
	}

	t.Log("stopped: it is the first to go")
	s.ActOnVM(t, vm, "stop", nil)
	awaitStatus(t, s, vm, "Stopped")
	awaitNodeStatus(t, s, vm, "down")
	s.Metrics.Want(2)
	harness.Eventually(t, 2*time.Minute, "two VMs, without "+vm, func() error {
		after := uids(t, s)
		if _, there := after[vm]; there || len(after) != 2 {
			return fmt.Errorf("VMs: %v", after)
		}
		return nil
	})
	s.Metrics.Want(0)
	harness.Eventually(t, 2*time.Minute, "nothing is left of them", func() error {
		return noneLeft(s, harness.VirtualMachines, harness.Instances, harness.Claims) // the template has a Secret
	})
	agent.StopInOrder(t)
	checkRequests(t, s)
}

// Harvester keeps the volumes that a VM had before, because the snapshot needs them: when the VM goes, so do they and
// the snapshot.
func TestAVMThatIsRestoredFromASnapshotStaysInItsPoolAndGoesWithoutTrace(t *testing.T) {
	s := harness.Start(t)
	s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 2)
	before := uids(t, s)
	vm := s.VMs(t)[0].Name()
	of := harness.Object{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": vm}

	harvesterDoes(t, s, "VirtualMachineBackup", harness.Object{"type": "snapshot", "source": of}, "readyToUse")
	stays(t, s, before)

	s.ActOnVM(t, vm, "stop", nil)
	awaitStatus(t, s, vm, "Stopped")
	harvesterDoes(t, s, "VirtualMachineRestore", harness.Object{
		"target": of, "newVM": false, "deletionPolicy": "retain",
		"virtualMachineBackupName": "virtualmachinebackup", "virtualMachineBackupNamespace": s.Namespace,
	}, "complete")
	harness.Eventually(t, time.Minute, vm+" runs", func() error { return running(s.Kube, s.Namespace, vm) })
	awaitNodeStatus(t, s, vm, "ready")
	stays(t, s, before)

	s.Metrics.Want(0)
	harness.Eventually(t, 3*time.Minute, "no trace", func() error {
		return noneLeft(s, harness.VirtualMachines, harness.Claims, harness.Secrets, harvesters("VirtualMachineBackup"), harvesters("VirtualMachineRestore"),
			harness.Resource{Group: "snapshot.storage.k8s.io", Version: "v1", Plural: "volumesnapshots"})
	})
	checkRequests(t, s)
}

// harvesterDoes makes an object of Harvester's, of which a user needs one, and waits until its status says that it is
// done.
func harvesterDoes(t *testing.T, s *harness.Stack, kind string, spec harness.Object, done string) {
	t.Helper()
	object := harness.Object{
		"apiVersion": "harvesterhci.io/v1beta1", "kind": kind, "spec": spec,
		"metadata": harness.Object{"name": strings.ToLower(kind), "namespace": s.Namespace},
	}
	must(t, s.Kube.Apply([]harness.Object{object}))
	harness.Eventually(t, 2*time.Minute, kind+" is done", func() error {
		stored, err := s.Kube.Get(harvesters(kind), s.Namespace, strings.ToLower(kind))
		if err == nil && !stored.Bool("status", done) {
			err = fmt.Errorf("its status is %v", stored.At("status"))
		}
		return err
	})
}

func harvesters(kind string) harness.Resource {
	return harness.ResourceOf(harness.Object{"apiVersion": "harvesterhci.io/v1beta1", "kind": kind})
}

// stays checks, while the agent evaluates its policy, that the plugin touches none of the VMs and makes none.
func stays(t *testing.T, s *harness.Stack, before map[string]string) {
	t.Helper()
	s.DuringEvaluations(t, 6, func() {
		must(t, untouched(s))
		after := uids(t, s)
		delete(after, "copy")
		if !maps.Equal(before, after) {
			t.Fatalf("the VMs were %v, and are %v", before, after)
		}
	})
}

func nodeOf(t *testing.T, s *harness.Stack, vm string) harness.Object {
	t.Helper()
	return must1(s.Nomad.Node(vm))(t)
}

func instanceOf(t *testing.T, s *harness.Stack, vm string) harness.Object {
	t.Helper()
	return must1(s.Kube.Get(harness.Instances, s.Namespace, vm))(t)
}

// An operator keeps VMs off a host, and empties it with Harvester's maintenance mode, while the pool shrinks.
func TestHostsThatAreCordonedAndEmptiedCostThePoolNothing(t *testing.T) {
	s := harness.StartAlone(t)
	mayListHosts(t, s)
	s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 3)
	host := instanceOf(t, s, s.VMs(t)[0].Name()).Str("status", "nodeName")

	t.Log("cordoned: its VMs are the first to go")
	s.ActOnHost(t, host, "cordon", nil)
	onHost := must1(vmsOn(s, host))(t)
	s.Metrics.Want(3 - len(onHost))
	s.AwaitSettled(t, 3*time.Minute, 3-len(onHost))
	for name := range uids(t, s) {
		if onHost[name] {
			t.Errorf("%s is on a cordoned host, and was kept", name)
		}
	}
	s.ActOnHost(t, host, "uncordon", nil)
	s.Reach(t, 2*time.Minute, 3)
	before := uids(t, s)

	for _, force := range []string{"false", "true"} {
		t.Logf("maintenance mode, by force: %s", force)
		host := instanceOf(t, s, s.VMs(t)[0].Name()).Str("status", "nodeName")
		s.ActOnHost(t, host, "enableMaintenanceMode", harness.Object{"force": force})
		harness.Eventually(t, 3*time.Minute, host+" is empty", func() error {
			left, err := vmsOn(s, host)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("VMs on it: %v", left)
			}
			return err
		})
		s.AwaitSettled(t, time.Minute, 3)
		if after := uids(t, s); !maps.Equal(before, after) {
			t.Errorf("the VMs were %v, and are %v", before, after)
		}
		s.ActOnHost(t, host, "disableMaintenanceMode", nil)
	}

	t.Log("a VM is removed while it moves")
	vm := s.VMs(t)[0].Name()
	s.Fail(harness.Faults{HoldMoves: true})
	s.ActOnVM(t, vm, "migrate", harness.Object{"nodeName": ""})
	harness.Eventually(t, time.Minute, vm+" moves", func() error {
		if instanceOf(t, s, vm).Str("status", "migrationState", "startTimestamp") == "" {
			return errors.New("it does not")
		}
		return nil
	})
	s.Reach(t, 3*time.Minute, 0)
	checkRequests(t, s)
}

// VMs that cannot migrate leave a host once it is cordoned (rule R7), so that Harvester's maintenance mode finds none there.
func TestVMsThatCannotMigrateLeaveACordonedHostAndThenItsMaintenanceBegins(t *testing.T) {
	const vms = 3
	s := harness.StartAlone(t)
	mayListHosts(t, s)
	s.Fail(harness.Faults{BoundGuest: true})
	s.PolicyKeys = map[string]string{"on_host_maintenance": "evacuate"}
	s.StartAgent(t)
	s.Reach(t, 2*time.Minute, vms)
	host := instanceOf(t, s, s.VMs(t)[0].Name()).Str("status", "nodeName")
	before := uids(t, s)
	onHost := must1(vmsOn(s, host))(t)

	s.ActOnHost(t, host, "cordon", nil)
	least := vms
	harness.Eventually(t, 6*time.Minute, "all VMs have left "+host, func() error {
		eligible, err := eligibleNodes(s, "ready")
		if err != nil {
			return err
		}
		least = min(least, eligible)
		left, err := vmsOn(s, host)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("on it: %v", left)
		}
		return err
	})
	if least < vms {
		t.Errorf("there were %d eligible nodes at one moment, want %d at each", least, vms)
	}
	s.AwaitSettled(t, time.Minute, vms)
	for name, uid := range uids(t, s) {
		if onHost[name] {
			t.Errorf("%s is still there", name)
		}
		if before[name] == uid {
			delete(before, name)
		}
	}
	for name := range before {
		if !onHost[name] {
			t.Errorf("%s was on another host, and was replaced", name)
		}
	}

	s.ActOnHost(t, host, "enableMaintenanceMode", harness.Object{"force": "false"})
	harness.Eventually(t, time.Minute, host+" is in maintenance mode", func() error {
		object, err := s.Kube.Get(harness.Hosts, "", host)
		if state := object.Str("metadata", "annotations", "harvesterhci.io/maintain-status"); err == nil && state != "completed" {
			err = fmt.Errorf("its maintain-status is %q", state)
		}
		return err
	})
	s.ActOnHost(t, host, "disableMaintenanceMode", nil)
	checkRequests(t, s)
}

// A host dies with the VMs on it, and stays away. Harvester moves them elsewhere after its policy's times.
func TestAHostThatDiesTakesNoVMWithIt(t *testing.T) {
	s := harness.StartAlone(t)
	// Harvester waits for 10 s, in place of 180, for a migration away from a host that is down.
	setPolicy(t, s, `{"enable":true,"period":15,"vmMigrationTimeout":10}`)
	t.Cleanup(func() { setPolicy(t, s, "") })
	s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 3)
	before := uids(t, s)
	if lost := must1(vmsOn(s, harness.Host(0)))(t); len(lost) == 0 {
		t.Fatalf("no VM runs on %s", harness.Host(0))
	}
	began := time.Now()
	s.SetHostDown(harness.Host(0), true)
	harness.Eventually(t, 8*time.Minute, "three VMs run on the other hosts", func() error {
		if err := s.Settled(3); err != nil {
			return err
		}
		left, err := vmsOn(s, harness.Host(0))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("on the host that died: %v", left)
		}
		return err
	})
	t.Logf("whole again after %v", time.Since(began).Round(time.Second))
	if after := uids(t, s); !maps.Equal(before, after) {
		t.Errorf("the VMs were %v, and are %v", before, after)
	}
	s.SetHostDown(harness.Host(0), false)
	s.Reach(t, 2*time.Minute, 0)
	checkRequests(t, s)
}

func setPolicy(t *testing.T, s *harness.Stack, value string) {
	t.Helper()
	if _, err := s.Kube.Patch(settings, "", "vm-force-reset-policy", harness.Object{"value": value}); err != nil {
		t.Error(err)
	}
}
