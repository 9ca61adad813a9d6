// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Controller replaces KubeVirt and Harvester for the virtual machines of one
// namespace. One goroutine advances every VM by a step in each round, based only
// on the objects in the API server.
//
// KubeVirt's part: instances, their phases, finalizers, the VM's status
// (kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go). Harvester's part: claims
// from one annotation of the VM, and their removal, as listed in another one, by a
// finalizer (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go).
type Controller struct {
	kube      *Kube
	namespace string
	machines  *Machines
	log       *log.Logger
	cloning   atomic.Bool // the volumes of new VMs are not ready yet

	running map[string]*Machine  // by the instance's uid
	asked   map[string]bool      // instances whose machine is shutting down
	retryAt map[string]time.Time // by the VM's uid: when to restart a guest that ended
	logged  map[string]string    // the last problem of each VM
	booted  int                  // how many instances have booted
}

// Host returns the name of the n-th physical host, from 0.
func Host(n int) string { return fmt.Sprintf("harvester-node-%d", n) }

const (
	kubevirtFinalizer  = "kubevirt.io/virtualMachineControllerFinalize"
	harvesterFinalizer = "wrangler.cattle.io/VMController.CleanupPVCAndSnapshot"
	instanceFinalizer  = "foregroundDeleteVirtualMachine"
	claimsAnnotation   = "harvesterhci.io/volumeClaimTemplates"
	removedAnnotation  = "harvesterhci.io/removedPersistentVolumeClaims"
)

func startController(t testing.TB, dir string, admin *Kube, namespace string, machines *Machines) *Controller {
	t.Helper()
	path := filepath.Join(dir, "controller.log")
	file := must[*os.File](t, path)(os.Create(path))
	c := &Controller{
		kube: admin, namespace: namespace, machines: machines, log: log.New(file, "", log.Ltime|log.Lmicroseconds),
		running: map[string]*Machine{}, asked: map[string]bool{}, retryAt: map[string]time.Time{}, logged: map[string]string{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c.round()
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		file.Close()
		if t.Failed() {
			t.Logf("end of the controller's log:\n%s", tail(path, 60))
		}
	})
	return c
}

// HoldClones keeps new VMs from getting an instance, as while an image is cloned, until
// it is called with false.
func (s *Stack) HoldClones(hold bool) {
	if s.real {
		s.Fail(Faults{HoldClaims: hold})
		return
	}
	s.controller.cloning.Store(hold)
}

func (c *Controller) round() {
	vms, err := c.kube.List(VirtualMachines, c.namespace, "")
	if err != nil {
		c.note("list", err)
		return
	}
	instances, err := c.kube.List(Instances, c.namespace, "")
	if err != nil {
		c.note("list", err)
		return
	}
	byName := map[string]Object{}
	for _, instance := range instances {
		byName[instance.Name()] = instance
		if instance.Terminating() {
			c.note(instance.Name(), c.endInstance(instance))
		}
	}
	for _, vm := range vms {
		step := c.carry
		if vm.Terminating() {
			step = c.remove
		}
		c.note(vm.Name(), step(vm, byName[vm.Name()]))
	}
}

// note logs a problem once. Other clients write these objects, too: a conflict, or
// an object that was deleted meanwhile, is handled in the next round.
func (c *Controller) note(name string, err error) {
	if isStatus(err, http.StatusConflict) || isStatus(err, http.StatusNotFound) {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if c.logged[name] != text && text != "" {
		c.log.Printf("%s: %s", name, text)
	}
	c.logged[name] = text
}

// carry advances a VM by one step towards running.
func (c *Controller) carry(vm, instance Object) error {
	if done, err := c.setFinalizers(VirtualMachines, vm, kubevirtFinalizer, harvesterFinalizer); !done {
		return err
	}
	if err := c.makeClaims(vm); err != nil {
		return err
	}
	wanted := slices.Contains([]string{"RerunOnFailure", "Always", "Once"}, vm.Str("spec", "runStrategy"))
	switch {
	case instance == nil && !wanted:
		return c.setStatus(vm, "Stopped", false, false)
	case instance == nil && c.cloning.Load():
		return c.setStatus(vm, "Provisioning", false, false)
	case instance == nil && time.Now().Before(c.retryAt[vm.UID()]):
		return c.setStatus(vm, "CrashLoopBackOff", false, false)
	case instance == nil:
		c.log.Printf("%s: instance", vm.Name())
		if err := c.makeInstance(vm); err != nil {
			return err
		}
		return c.setStatus(vm, "Starting", true, false)
	case instance.Terminating():
		return c.setStatus(vm, "Stopping", true, false)
	}
	phase := instance.Str("status", "phase")
	if machine := c.running[instance.UID()]; phase == "Running" && (machine == nil || !machine.Running()) {
		// The guest shut itself down: these strategies restart it.
		if machine != nil {
			c.log.Printf("%s: its machine has ended:\n%s", vm.Name(), tail(machine.Log, 5))
		}
		c.retryAt[vm.UID()] = time.Now().Add(10 * time.Second)
		return c.kube.Delete(Instances, c.namespace, instance.Name())
	}
	if phase == "Running" {
		return c.setStatus(vm, "Running", true, true)
	}
	if err := c.setStatus(vm, "Starting", true, false); err != nil {
		return err
	}
	return c.advance(vm, instance, phase)
}

// advance moves an instance to its next phase; the machine boots with the last step.
func (c *Controller) advance(vm, instance Object, phase string) error {
	next := map[string]string{"": "Pending", "Pending": "Scheduling", "Scheduling": "Scheduled", "Scheduled": "Running"}[phase]
	if next == "" {
		return fmt.Errorf("instance in phase %q", phase)
	}
	status := Object{"phase": next, "phaseTransitionTimestamps": append(instance.List("status", "phaseTransitionTimestamps"), Object{
		"phase": next, "phaseTransitionTimestamp": time.Now().UTC().Format(time.RFC3339),
	})}
	if next == "Running" {
		machine, err := c.boot(vm, instance)
		if err != nil {
			return err
		}
		var interfaces []Object
		for _, nic := range instance.List("spec", "domain", "devices", "interfaces") {
			interfaces = append(interfaces, Object{
				"name": nic.Str("name"), "mac": "52:54:00:12:34:56", "infoSource": "domain, guest-agent",
				"ipAddress": machine.Address, "ipAddresses": []string{machine.Address}, "interfaceName": "enp1s0",
			})
		}
		status["nodeName"] = Host(c.booted % 2) // two hosts in turn
		c.booted++
		status["interfaces"] = interfaces
		status["conditions"] = []Object{{"type": "Ready", "status": "True"}, {"type": "AgentConnected", "status": "True"}}
	}
	c.log.Printf("%s: %s", vm.Name(), next)
	_, err := c.kube.Patch(Instances, c.namespace, instance.Name(), Object{"status": status})
	return err
}

// boot starts the machine of an instance with the user data that its cloud-init
// volume refers to; a pod that mounts a missing Secret waits for it.
func (c *Controller) boot(vm, instance Object) (*Machine, error) {
	secret := ""
	for _, volume := range instance.List("spec", "volumes") {
		if name := volume.Str("cloudInitNoCloud", "secretRef", "name"); name != "" {
			secret = name
		}
	}
	if secret == "" {
		return nil, fmt.Errorf("no cloud-init volume with a Secret")
	}
	userData, err := c.kube.Get(Secrets, c.namespace, secret)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %v", secret, err)
	}
	files, err := FilesOf(userData)
	if err != nil {
		return nil, err
	}
	hostname := instance.Str("spec", "hostname")
	if hostname == "" {
		hostname = vm.Name()
	}
	machine, err := c.machines.Boot(vm.UID(), hostname, files)
	if err == nil {
		c.running[instance.UID()] = machine
	}
	return machine, err
}

// remove advances the removal of a deleted VM: the guest first, then its volumes.
func (c *Controller) remove(vm, instance Object) error {
	if err := c.setStatus(vm, "Terminating", instance != nil, false); err != nil {
		return err
	}
	if instance != nil {
		if instance.Terminating() {
			return nil
		}
		c.log.Printf("%s: told to go", vm.Name())
		return c.kube.Delete(Instances, c.namespace, instance.Name())
	}
	if slices.Contains(vm.Finalizers(), kubevirtFinalizer) {
		return c.dropFinalizer(VirtualMachines, vm, kubevirtFinalizer)
	}
	if !slices.Contains(vm.Finalizers(), harvesterFinalizer) {
		return nil
	}
	for claim := range strings.SplitSeq(vm.Annotation(removedAnnotation), ",") {
		if claim = strings.TrimSpace(claim); claim == "" {
			continue
		}
		if err := c.kube.Delete(Claims, c.namespace, claim); err != nil {
			return err
		}
	}
	c.log.Printf("%s: gone", vm.Name())
	return c.dropFinalizer(VirtualMachines, vm, harvesterFinalizer)
}

// endInstance shuts a machine down and removes its instance once it is off.
func (c *Controller) endInstance(instance Object) error {
	if machine := c.running[instance.UID()]; machine != nil && machine.Running() {
		if !c.asked[instance.UID()] {
			c.asked[instance.UID()] = true
			go machine.ShutDown()
		}
		return nil
	}
	return c.dropFinalizer(Instances, instance, instanceFinalizer)
}

// makeClaims creates the claims in the VM's annotation.
func (c *Controller) makeClaims(vm Object) error {
	annotation := vm.Annotation(claimsAnnotation)
	if annotation == "" {
		return nil
	}
	var templates []Object
	if err := json.Unmarshal([]byte(annotation), &templates); err != nil {
		return fmt.Errorf("%s: %w", claimsAnnotation, err)
	}
	for _, template := range templates {
		claim, err := c.kube.Get(Claims, c.namespace, template.Name())
		if isStatus(err, http.StatusNotFound) {
			metadata := template.Obj("metadata")
			metadata["namespace"] = c.namespace
			claim, err = c.kube.Create(Claims, c.namespace, Object{
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template.At("spec"),
			})
		}
		if err != nil {
			return err
		}
		if claim.Str("status", "phase") != "Bound" {
			bound := Object{"status": Object{"phase": "Bound"}}
			if _, err := c.kube.Patch(Claims, c.namespace, claim.Name(), bound, "status"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Controller) makeInstance(vm Object) error {
	_, err := c.kube.Create(Instances, c.namespace, Object{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
		"metadata": Object{
			"name": vm.Name(), "namespace": c.namespace, "finalizers": []string{instanceFinalizer},
			"labels":      vm.At("spec", "template", "metadata", "labels"),
			"annotations": vm.At("spec", "template", "metadata", "annotations"),
			"ownerReferences": []Object{{
				"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": vm.Name(), "uid": vm.UID(),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": vm.At("spec", "template", "spec"),
	})
	return err
}

// setStatus writes the VM's status if it differs.
func (c *Controller) setStatus(vm Object, printable string, created, ready bool) error {
	status := vm.Obj("status")
	if status.Str("printableStatus") == printable && status.Bool("created") == created && status.Bool("ready") == ready {
		return nil
	}
	condition := Object{"type": "Ready", "status": "True"}
	if !ready {
		condition = Object{"type": "Ready", "status": "False", "reason": "GuestNotRunning", "message": "Guest VM is not reported as running"}
	}
	_, err := c.kube.Patch(VirtualMachines, c.namespace, vm.Name(), Object{"status": Object{
		"printableStatus": printable, "created": created, "ready": ready,
		"runStrategy": vm.Str("spec", "runStrategy"), "conditions": []Object{condition},
	}}, "status")
	return err
}

// setFinalizers returns whether the object has them, and adds them if not.
func (c *Controller) setFinalizers(r Resource, object Object, finalizers ...string) (bool, error) {
	all := object.Finalizers()
	for _, finalizer := range finalizers {
		if !slices.Contains(all, finalizer) {
			all = append(all, finalizer)
		}
	}
	if len(all) == len(object.Finalizers()) {
		return true, nil
	}
	return false, c.patchFinalizers(r, object, all)
}

func (c *Controller) dropFinalizer(r Resource, object Object, finalizer string) error {
	rest := slices.DeleteFunc(object.Finalizers(), func(f string) bool { return f == finalizer })
	return c.patchFinalizers(r, object, rest)
}

func (c *Controller) patchFinalizers(r Resource, object Object, finalizers []string) error {
	if finalizers == nil {
		finalizers = []string{}
	}
	_, err := c.kube.Patch(r, c.namespace, object.Name(), Object{"metadata": Object{
		"finalizers": finalizers, "resourceVersion": object.Str("metadata", "resourceVersion"),
	}})
	return err
}
