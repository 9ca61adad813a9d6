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
	if !isPlayed(host) || p.isDown(host) {
		return nil
	}
	switch instance.Str("status", "phase") {
	case "Scheduled":
		switch _, booted := p.running[instance.UID()]; {
		case booted && instance.Terminating():
			return p.shutDown(instance)
		case instance.Terminating():
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
		if err := p.reportAgent(instance); err != nil {
			return err
		}
		return p.superviseGuest(instance)
	}
	return nil
}

// boot starts the guest: a machine with the user data of the instance's cloud-init volume. It starts one only,
// although the API server may lose what it is told of it.
func (p *players) boot(instance Object) error {
	machine := p.running[instance.UID()]
	if machine == nil {
		var err error
		if machine, err = p.bootMachine(instance); err != nil {
			return err
		}
		p.running[instance.UID()] = machine
		if p.fault(instance).HungGuests {
			if err := machine.Suspend(); err != nil {
				return err
			}
		}
	}
	migratable := condition("LiveMigratable", true, "", "")
	if p.fault(instance).BoundGuest {
		migratable = condition("LiveMigratable", false, "HostDeviceNotLiveMigratable", "VMI uses a PCI host devices")
	}
	conditions, _ := withConditions(instance, migratable,
		condition("StorageLiveMigratable", true, "", ""), condition("AgentConnected", machine.reported() != "", "", ""))
	return p.setPhase(instance, "Running", Object{
		"interfaces": interfacesOf(instance, machine), "conditions": conditions, "migrationMethod": "BlockMigration",
		"selinuxContext": "none", "machine": Object{"type": "pc-q35-9.1"},
	})
}

// interfacesOf is what KubeVirt knows of an instance's network cards. Only the guest's agent knows the address in a
// bridged network.
func interfacesOf(instance Object, machine *Machine) (interfaces []Object) {
	for i, nic := range instance.List("spec", "domain", "devices", "interfaces") {
		known := Object{"name": nic.Str("name"), "mac": macOf(nic), "infoSource": "domain, multus-status", "queueCount": 1}
		if address := machine.reported(); address != "" {
			known["infoSource"], known["interfaceName"] = "domain, guest-agent, multus-status", fmt.Sprintf("enp%ds0", i+1)
			known["ipAddress"], known["ipAddresses"] = address, []string{address}
		}
		interfaces = append(interfaces, known)
	}
	return interfaces
}

// reportAgent tells what the guest's agent says, once it does.
func (p *players) reportAgent(instance Object) error {
	machine := p.running[instance.UID()]
	if machine == nil || machine.reported() == "" || HasCondition(instance, "AgentConnected") {
		return nil
	}
	conditions, _ := withConditions(instance, condition("AgentConnected", true, "", ""))
	_, err := p.handler.Patch(Instances, instance.Str("metadata", "namespace"), instance.Name(), at(instance, Object{"status": Object{
		"interfaces": interfacesOf(instance, machine), "conditions": conditions,
	}}))
	return err
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
	p.log.Printf("%s: boots on %s", instance.Name(), instance.Str("status", "nodeName"))
	machines := p.machinesOf(namespace)
	if machines == nil {
		return nil, fmt.Errorf("no test has namespace %s", namespace)
	}
	if machines.image != "" {
		return machines.bootGuest(id, &guest{name: name, instance: instance, secret: userData, disks: p.disksOf(instance)})
	}
	files, err := FilesOf(userData)
	if err != nil {
		return nil, err
	}
	return machines.Boot(id, name, files)
}

// disksOf returns the volumes of an instance that have a claim, by their names.
func (p *players) disksOf(instance Object) map[string]disk {
	disks := map[string]disk{}
	for _, volume := range instance.List("spec", "volumes") {
		for _, name := range []string{volume.Str("persistentVolumeClaim", "claimName"), volume.Str("dataVolume", "name")} {
			if claim := p.claim(instance.Str("metadata", "namespace"), name); claim != nil {
				disks[volume.Str("name")] = disk{
					size:      claim.Str("spec", "resources", "requests", "storage"),
					fromImage: claim.Annotation("harvesterhci.io/imageId") != "",
				}
			}
		}
	}
	return disks
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
