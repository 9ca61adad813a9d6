// SPDX-License-Identifier: Apache-2.0

//go:build guest

// Guests of QEMU, which emulates a processor: three minutes of the machine's own for each boot.

package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Tests the environment without the plugin and without a cluster: the image, what QEMU makes of a VM, and the example of
// user data, with its variables replaced.
func TestAGuestBootsAndJoinsWithTheExampleOfUserData(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{Guests: true, WithoutACLs: true})
	example, err := os.ReadFile(filepath.Join(harness.Root, "examples", "cloud-init.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	userData := strings.NewReplacer("{{vm_name}}", introducedName, "{{vm_uuid}}", harness.SampleUID, "nomad.example.org", s.Nomad.RPC,
		"{{nomad_region}}", "", "{{datacenter}}", "dc1", "{{node_class}}", "", "{{node_pool}}", "default",
		"{{namespace}}", "nomad", "{{pool}}", "clients").Replace(string(example))
	secret := harness.SampleSecret("nomad", introducedName)
	secret["data"] = harness.Object{"userdata": base64.StdEncoding.EncodeToString([]byte(userData))}
	vm := harness.SampleVM("nomad", introducedName)

	began := time.Now()
	machine := s.Machines.BootGuest(t, vm, secret)
	var node harness.Object
	harness.Eventually(t, 25*time.Minute, "the guest is a ready node", func() error {
		time.Sleep(time.Second)
		node, err = s.Nomad.Node(introducedName)
		if err == nil && node.Str("Status") != "ready" {
			err = fmt.Errorf("node %q is %q", introducedName, node.Str("Status"))
		}
		if !machine.Running() {
			t.Fatal("QEMU has ended")
		}
		return err
	})
	t.Logf("its node was ready after %v", time.Since(began).Round(time.Second))
	checkMachine(t, machine, node, introducedName, harness.SampleUID)
	began = time.Now()
	machine.ShutDown()
	t.Logf("it was off after %v; it took %v of a processor", time.Since(began).Round(time.Second), machine.CPU().Round(time.Second))
	if ending := machine.Ending(); ending != harness.PowerOff {
		t.Errorf("the guest ended by a %v, want that it shut down when its power button was pressed", ending)
	}
}

// How long a guest may take, in emulation.
const guestJoins, guestLeaves = 25 * time.Minute, 10 * time.Minute

// guests starts a stack whose VMs are small guests of QEMU.
func guests(t *testing.T, options harness.NomadOptions, keys map[string]string) *harness.Stack {
	t.Helper()
	options.Guests = true
	s := harness.StartWith(t, options)
	s.JoinTimeout, s.DrainDeadline = guestJoins, 2*time.Minute
	s.PolicyKeys = map[string]string{"cpu_request": "2", "memory_request": "1Gi"}
	maps.Copy(s.PolicyKeys, keys)
	return s
}

// grow takes the pool from nothing to guests that are ready nodes.
func grow(t *testing.T, s *harness.Stack, count int) []*harness.Machine {
	t.Helper()
	began := time.Now()
	s.Reach(t, guestJoins, count)
	t.Logf("%d guests were ready nodes after %v", count, time.Since(began).Round(time.Second))
	return s.Machines.Running()
}

// checkOff: the guests have shut down, each because its power button was pressed.
func checkOff(t *testing.T, machines []*harness.Machine) {
	t.Helper()
	for _, machine := range machines {
		if ending := machine.Ending(); ending != harness.PowerOff {
			t.Errorf("%s ended by a %v, want that it shut down when its power button was pressed", machine.Name, ending)
		}
		t.Logf("%s took %v of a processor", machine.Name, machine.CPU().Round(time.Second))
	}
}

// The VM and the Secret are the plugin's, the image is examples/image.sh's, and nothing is added: the guests get their
// names and their user data from the cloud-init volume, and their addresses by DHCP.
func TestGuestsBootJoinRunAJobAndAreGone(t *testing.T) { bootJoinRunAJobAndGo(t, 2) }

// The same with one guest, which is cheap enough for every run.
func TestOneGuestBootsJoinsRunsAJobAndIsGone(t *testing.T) { bootJoinRunAJobAndGo(t, 1) }

func bootJoinRunAJobAndGo(t *testing.T, count int) {
	s := guests(t, harness.NomadOptions{}, map[string]string{"data_disks": "1Gi"})
	agent := s.StartAgent(t)
	departures := watchDepartures(s)
	machines := grow(t, s, count)
	for _, vm := range s.VMs(t) {
		checkGuest(t, s, machines, vm)
	}
	told := witness(t, s)
	// Sectors of 512 bytes: the root disk, which has grown to what the policy asks for, then the data disk.
	want := []string{"2 processors", "vda 83886080", "vdb 2097152", "enp1s0"}
	if !slices.ContainsFunc(machines, func(m *harness.Machine) bool { return m.Name == told[0] }) || !slices.Equal(told[1:], want) {
		t.Errorf("a job in a guest says %q, want a VM's name and %q", told, want)
	}

	s.Reach(t, guestLeaves, 0)
	departures.check(t, count)
	checkOff(t, machines)
	checkRequests(t, s)
	agent.StopInOrder(t)
}

// The same VM with other firmware and with network data, for the name that the card has in a guest of Harvester. The
// guest reboots by itself, which nobody is told of: its node goes down and comes back as the same one.
func TestAGuestOfUEFIWithNetworkDataComesBackFromAReboot(t *testing.T) {
	s := guests(t, harness.NomadOptions{}, map[string]string{
		"firmware": "uefi", "network_data": "{version: 2, ethernets: {enp1s0: {dhcp4: true}}}",
	})
	s.StartAgent(t)
	machines := grow(t, s, 1)
	machine, before := machines[0], s.VMs(t)[0]
	if file, err := machine.ReadFile("/etc/systemd/network/10-cloud-init-enp1s0.network"); err != nil || !strings.Contains(file, "DHCP=ipv4") {
		t.Errorf("cloud-init configured the network with %q: %v", file, err)
	}
	if _, err := machine.ReadFile("/sys/firmware/efi/fw_platform_size"); err != nil {
		t.Errorf("the guest did not boot by UEFI: %v", err)
	}

	machine.RebootGuest()
	harness.Eventually(t, 5*time.Minute, "the node is down", func() error { return nodeIs(s, "down") })
	harness.Eventually(t, 10*time.Minute, "the node is back", func() error { return nodeIs(s, "ready") })
	s.AwaitSettled(t, 5*time.Minute, 1)
	if after := s.VMs(t)[0]; after.UID() != before.UID() || after.Annotation(nodeAnnotation) != before.Annotation(nodeAnnotation) {
		t.Errorf("%s with node %s took the place of %s with node %s", after.Name(), after.Annotation(nodeAnnotation),
			before.Name(), before.Annotation(nodeAnnotation))
	}
	s.Reach(t, guestLeaves, 0)
	checkOff(t, machines)
}

func TestAGuestWithTheExampleOfTLSDrainsItselfWhenItShutsDown(t *testing.T) {
	s := guests(t, harness.NomadOptions{TLS: true}, map[string]string{"termination_grace_period": "6m"})
	s.DrainOnShutdown = time.Minute
	s.StartAgent(t)
	machines := grow(t, s, 1)
	if node, err := s.Nomad.Node(machines[0].Name); !node.Bool("TLSEnabled") || node.Str("Attributes", "plugins.cni.version.bridge") == "" {
		t.Errorf("TLS %v, %v: %v", node.At("TLSEnabled"), node.At("Attributes"), err)
	}
	s.Metrics.Want(0)
	for _, id := range awaitNodesWithoutVMs(t, s, 1) {
		if _, err := s.Nomad.Do(http.MethodPost, "/v1/node/"+id+"/purge", nil); err != nil {
			t.Error(err)
		}
	}
	checkOff(t, machines)
}

// Without certificates no clock matters. This Nomad has no introduction tokens: "auto" is none.
func TestAGuestWithTheExampleOfIntroductionJoinsAlthoughItsClockIsAnHourSlow(t *testing.T) {
	s := guests(t, harness.NomadOptions{}, nil)
	s.Introduction = "auto"
	s.Machines.GuestClock = -time.Hour
	s.StartAgent(t)
	machines := grow(t, s, 1)
	if token, err := machines[0].ReadFile(tokenFile); err == nil {
		t.Errorf("the guest has kept an introduction token: %q", token)
	}
	s.Reach(t, guestLeaves, 0)
	checkOff(t, machines)
}

// What the plugin and status say of a guest that boots and does not join.
func TestAGuestThatBootsAndDoesNotJoinIsToldFromOneThatDoesNotBoot(t *testing.T) {
	for name, trouble := range map[string]struct {
		options harness.NomadOptions
		prepare func(t *testing.T, s *harness.Stack)
	}{
		"a clock that is an hour slow, for which a new certificate is not valid yet": {
			harness.NomadOptions{TLS: true}, func(_ *testing.T, s *harness.Stack) { s.Machines.GuestClock = -time.Hour },
		},
		"a configuration of Nomad that cannot be read": {harness.NomadOptions{}, func(t *testing.T, s *harness.Stack) {
			file := filepath.Join(s.Dir, "agent", "cloud-init.yaml")
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, []byte(strings.Replace(string(text), `"/opt/nomad/data"`, `"/opt/nomad/data`, 1)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := guests(t, trouble.options, nil)
			s.JoinTimeout, s.DrainOnShutdown = 8*time.Minute, time.Minute
			agent := s.StartAgent(t)
			trouble.prepare(t, s)
			s.Metrics.Want(1)
			const told = "its guest agent answers, and no Nomad node has its name"
			harness.Eventually(t, s.JoinTimeout, "status tells how far the guest came", func() error {
				time.Sleep(time.Second)
				if out, _ := s.Command(t, "status"); !containsAll(out, []string{"it has not joined yet", told}) {
					return errors.New(out)
				}
				return nil
			})
			machines := s.Machines.Running()
			harness.Eventually(t, 2*s.JoinTimeout, "the agent tells it, too", func() error {
				for _, line := range agent.NewLines(t) {
					if containsAll(line, []string{"it has not joined Nomad by its deadline", told}) {
						t.Log(line)
						return nil
					}
				}
				return errors.New("it does not")
			})
			s.Reach(t, guestLeaves, 0)
			checkOff(t, machines)
		})
	}
}

const nodeAnnotation = "nomad-harvester-autoscaler/nomad-node-id"

// nodeIs returns nil if there is one node, with this status.
func nodeIs(s *harness.Stack, status string) error {
	nodes, err := s.Nomad.List("/v1/nodes")
	if err == nil && (len(nodes) != 1 || nodes[0].Str("Status") != status) {
		err = fmt.Errorf("nodes: %v", nodes)
	}
	return err
}

// checkGuest compares what Nomad and KubeVirt say of the machine of a VM.
func checkGuest(t *testing.T, s *harness.Stack, machines []*harness.Machine, vm harness.Object) {
	t.Helper()
	node := must1(s.Nomad.Node(vm.Name()))(t)
	for _, machine := range machines {
		if machine.Name == vm.Name() {
			checkMachine(t, machine, node, vm.Name(), vm.Str("spec", "template", "spec", "domain", "firmware", "uuid"))
		}
	}
	instance := must1(s.Kube.Get(harness.Instances, s.Namespace, vm.Name()))(t)
	if address := instance.List("status", "interfaces")[0].Str("ipAddress"); node.Str("HTTPAddr") != address+":4646" {
		t.Errorf("the node says it is at %q, the guest's agent at %q", node.Str("HTTPAddr"), address)
	}
}

// checkMachine compares what Nomad and the guest's agent say of a machine of two processors with its VM.
func checkMachine(t *testing.T, machine *harness.Machine, node harness.Object, name, uuid string) {
	t.Helper()
	for what, pair := range map[string][2]string{
		"unique.hostname":        {node.Str("Attributes", "unique.hostname"), name},
		"cpu.numcores":           {node.Str("Attributes", "cpu.numcores"), "2"},
		"meta.harvester_vm_uuid": {node.Str("Meta", "harvester_vm_uuid"), uuid},
	} {
		if pair[0] != pair[1] {
			t.Errorf("the node's %s is %q, want %q", what, pair[0], pair[1])
		}
	}
	// Of which Nomad makes the node's ID, if no_host_uuid is false.
	if told, err := machine.ReadFile("/sys/class/dmi/id/product_uuid"); err != nil || strings.TrimSpace(told) != uuid {
		t.Errorf("the guest's firmware has the UUID %q (%v), want %s", told, err, uuid)
	}
}

// witness runs a job in a guest that says on which machine it is, and stays.
func witness(t *testing.T, s *harness.Stack) []string {
	t.Helper()
	const script = `hostname
echo "$(nproc) processors"
for disk in vda vdb; do echo "$disk $(cat /sys/block/$disk/size)"; done
ls /sys/class/net | grep -v lo
echo end
exec sleep 86400`
	s.Nomad.Run(t, job("witness", "service", harness.Object{
		"Count": 1,
		"Tasks": []harness.Object{{
			"Name": "witness", "Driver": "exec", "Config": harness.Object{"command": "/bin/sh", "args": []string{"-c", script}},
			"Resources": harness.Object{"CPU": 100, "MemoryMB": 64},
		}},
	}))
	told := ""
	harness.Eventually(t, 10*time.Minute, "a job in the guest says on which machine it is", func() error {
		allocations, err := s.Nomad.Allocations("witness")
		if err != nil {
			return err
		}
		if len(allocations) == 0 || allocations[0].Str("ClientStatus") == "pending" {
			return fmt.Errorf("%v", allocations)
		}
		_, text, err := s.Nomad.Request(http.MethodGet,
			"/v1/client/fs/logs/"+allocations[0].Str("ID")+"?task=witness&type=stdout&plain=true", nil)
		if err != nil {
			return err
		}
		var complete bool
		if told, complete = strings.CutSuffix(string(text), "\nend\n"); !complete {
			time.Sleep(2 * time.Second) // emulation is slow
			return fmt.Errorf("the allocation is %s: %v: %s", allocations[0].Str("ClientStatus"), allocations[0].At("TaskStates"), text)
		}
		return nil
	})
	return strings.Split(told, "\n")
}
