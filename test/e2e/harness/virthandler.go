// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"time"
)

// How long a guest takes until its agent answers.
const guestBoot = time.Second

// virtHandler advances an instance that has a host by one step.
func (p *players) virtHandler(instance Object) error {
	host := instance.Str("status", "nodeName")
	if host == "" || p.isDown(host) {
		return nil
	}
	switch instance.Str("status", "phase") {
	case "Scheduled":
		if instance.Terminating() {
			return p.setPhase(instance, "Failed", Object{})
		}
		if p.age(instance, "boot") < guestBoot {
			return nil
		}
		return p.boot(instance)
	case "Running":
		if instance.Terminating() {
			return p.shutDown(instance)
		}
		if moving, err := p.migrate(instance); moving {
			return err
		}
		if err := p.pause(instance); err != nil {
			return err
		}
		return p.superviseGuest(instance)
	}
	return nil
}

// boot starts the guest: a machine with the user data of the instance's cloud-init volume.
func (p *players) boot(instance Object) error {
	machine, err := p.bootMachine(instance)
	if err != nil {
		return err
	}
	p.running[instance.UID()] = machine
	if p.fault(instance).HungGuests {
		if err := machine.Suspend(); err != nil {
			return err
		}
	}
	var interfaces []Object
	for i, nic := range instance.List("spec", "domain", "devices", "interfaces") {
		mac := nic.Str("macAddress")
		if mac == "" {
			mac = "52:54:00:0a:0b:0c" // as KubeVirt, which makes one up
		}
		interfaces = append(interfaces, Object{
			"name": nic.Str("name"), "mac": mac, "infoSource": "domain, guest-agent, multus-status", "interfaceName": fmt.Sprintf("enp%ds0", i+1),
			"ipAddress": machine.Address, "ipAddresses": []string{machine.Address}, "queueCount": 1,
		})
	}
	migratable := condition("LiveMigratable", true, "", "")
	if p.fault(instance).BoundGuest {
		migratable = condition("LiveMigratable", false, "HostDeviceNotLiveMigratable", "VMI uses a PCI host devices")
	}
	conditions, _ := withConditions(instance, migratable,
		condition("StorageLiveMigratable", true, "", ""), condition("AgentConnected", true, "", ""))
	return p.setPhase(instance, "Running", Object{
		"interfaces": interfaces, "conditions": conditions, "migrationMethod": "BlockMigration",
		"selinuxContext": "none", "machine": Object{"type": "pc-q35-9.1"},
	})
}

func (p *players) bootMachine(instance Object) (*Machine, error) {
	secret := ""
	for _, volume := range instance.List("spec", "volumes") {
		if name := volume.Str("cloudInitNoCloud", "secretRef", "name"); name != "" {
			secret = name
		}
	}
	namespace, id, name := instance.Str("metadata", "namespace"), instance.UID(), instance.Str("spec", "hostname")
	if name == "" {
		name = instance.Name()
	}
	for _, owner := range instance.List("metadata", "ownerReferences") {
		id = owner.Str("uid") // the VM's, whose disks outlive an instance
	}
	if secret == "" {
		return nil, fmt.Errorf("no cloud-init volume with a Secret")
	}
	userData, err := p.kube.Get(Secrets, namespace, secret)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %v", secret, err)
	}
	files, err := FilesOf(userData)
	if err != nil {
		return nil, err
	}
	p.log.Printf("%s: boots on %s", instance.Name(), instance.Str("status", "nodeName"))
	machines := p.machinesOf(namespace)
	if machines == nil {
		return nil, fmt.Errorf("no test has namespace %s", namespace)
	}
	return machines.Boot(id, name, files)
}

// superviseGuest tells how a guest that ended by itself did so. One that reboots is not noticed by anybody.
func (p *players) superviseGuest(instance Object) error {
	machine := p.running[instance.UID()]
	if machine != nil && machine.Running() {
		return nil
	}
	ending := Crash
	if machine != nil {
		ending = machine.Ending()
	}
	p.log.Printf("%s: its guest has ended: %v", instance.Name(), ending)
	switch ending {
	case PowerOff:
		return p.setPhase(instance, "Succeeded", Object{})
	case Crash:
		return p.setPhase(instance, "Failed", Object{})
	}
	machine, err := p.bootMachine(instance)
	if err == nil {
		p.running[instance.UID()] = machine
	}
	return err
}

// shutDown presses the guest's power button once and tells when it is off.
func (p *players) shutDown(instance Object) error {
	if machine := p.running[instance.UID()]; machine != nil && machine.Running() {
		if !p.asked[instance.UID()] {
			p.asked[instance.UID()] = true
			p.log.Printf("%s: its guest shuts down", instance.Name())
			go machine.ShutDown()
		}
		return nil
	}
	return p.setPhase(instance, "Succeeded", Object{})
}

// setPhase writes an instance's next phase, and more of its status.
func (p *players) setPhase(instance Object, phase string, status Object) error {
	status["phase"] = phase
	status["phaseTransitionTimestamps"] = append(instance.List("status", "phaseTransitionTimestamps"),
		Object{"phase": phase, "phaseTransitionTimestamp": now()})
	_, err := p.handler.Patch(Instances, instance.Str("metadata", "namespace"), instance.Name(), at(instance, Object{"status": status}))
	return err
}
