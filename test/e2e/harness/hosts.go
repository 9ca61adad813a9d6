// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// HostNames returns the names of the cluster's hosts.
func HostNames() []string { return []string{Host(0), Host(1), Host(2)} }

// beatInterval is how often a host says that it is alive; kubelet's and virt-handler's are not far from it.
const beatInterval = 8 * time.Second

// A host as kubelet, RKE2, Harvester's node driver and virt-handler label it. Each is in a zone of its own.
func hostObject(n int) Object {
	name := Host(n)
	return Object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": Object{"name": name, "labels": Object{
			"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
			"topology.kubernetes.io/zone": ZoneOf(name), "network.harvesterhci.io/mgmt": "true", "harvesterhci.io/managed": "true",
			"node-role.kubernetes.io/control-plane": "true", "kubevirt.io/schedulable": "true", "cpumanager": "true",
			"cpu-model.node.kubevirt.io/Skylake-Server": "true", "host-model-cpu.node.kubevirt.io/Skylake-Server": "true",
			"cpu-model-migration.node.kubevirt.io/Skylake-Server": "true",
			"machine-type.node.kubevirt.io/q35":                   "true", "machine-type.node.kubevirt.io/pc-q35-9.1": "true",
		}},
	}
}

// ZoneOf returns the zone of a host.
func ZoneOf(host string) string { return "zone-" + host[len(host)-1:] }

func (p *players) addHosts(t testing.TB) {
	t.Helper()
	for n := range HostNames() {
		_, err := p.kube.Create(Hosts, "", hostObject(n))
		check(t, Host(n), err)
		p.note(Host(n), p.beat(Host(n)))
	}
}

// SetHostDown ends a host with everything on it, as a power cut does, or lets it come back empty.
func (c *Cluster) SetHostDown(host string, down bool) {
	p := c.players
	p.lock.Lock()
	p.down[host] = down
	p.lock.Unlock()
	if !down {
		return
	}
	instances, err := c.Kube.List(Instances, "", "")
	if err != nil {
		p.log.Printf("%s goes down: %v", host, err)
	}
	for _, instance := range instances {
		machines := p.machinesOf(instance.Str("metadata", "namespace"))
		if instance.Str("status", "nodeName") != host || machines == nil {
			continue
		}
		for _, machine := range machines.Running() {
			if machine.Name == instance.Name() {
				machine.Kill()
			}
		}
	}
}

func (p *players) isDown(host string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.down[host]
}

// beat is a host's heartbeat: kubelet's Lease and Ready condition, virt-handler's annotation and label.
func (p *players) beat(host string) error {
	if p.isDown(host) || time.Since(p.since[host]) < beatInterval {
		return nil
	}
	lease := Object{"spec": Object{
		"holderIdentity": host, "leaseDurationSeconds": 40, "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
	}}
	_, err := p.kube.Patch(Leases, nodeLeases, host, lease)
	if isStatus(err, http.StatusNotFound) {
		lease["apiVersion"], lease["kind"], lease["metadata"] = "coordination.k8s.io/v1", "Lease", Object{"name": host, "namespace": nodeLeases}
		_, err = p.kube.Create(Leases, nodeLeases, lease)
	}
	if err != nil {
		return err
	}
	node, err := p.kube.Patch(Hosts, "", host, Object{"metadata": Object{
		"annotations": Object{"kubevirt.io/heartbeat": now()}, "labels": Object{"kubevirt.io/schedulable": "true"},
	}})
	if err != nil {
		return err
	}
	ready := condition("Ready", true, "KubeletReady", "kubelet is posting ready status")
	delete(ready, "lastProbeTime")
	ready["lastHeartbeatTime"] = now()
	conditions := []Object{ready}
	for _, old := range node.List("status", "conditions") {
		if old.Str("type") == "Ready" && old.Str("status") == "True" {
			ready["lastTransitionTime"] = old.Str("lastTransitionTime")
		}
	}
	resources := Object{
		"cpu": "32", "memory": "128Gi", "pods": "200", "ephemeral-storage": "500Gi",
		"devices.kubevirt.io/kvm": "1k", "devices.kubevirt.io/tun": "1k", "devices.kubevirt.io/vhost-net": "1k",
		gpu: "2", nic: "2",
	}
	if _, err = p.kube.Patch(Hosts, "", host, Object{"status": Object{
		"capacity": resources, "allocatable": resources, "conditions": conditions,
		"addresses": []Object{{"type": "InternalIP", "address": hostAddress(host)}, {"type": "Hostname", "address": host}},
		"nodeInfo": Object{
			"machineID": host, "systemUUID": host, "bootID": host, "kernelVersion": "6.4.0", "osImage": "Harvester",
			"containerRuntimeVersion": "containerd://2.0", "kubeletVersion": "v1.35.3", "kubeProxyVersion": "v1.35.3",
			"operatingSystem": "linux", "architecture": "amd64",
		},
	}}, "status"); err != nil {
		return err
	}
	p.since[host] = time.Now()
	return nil
}

// Devices of each host that VMs may have.
const (
	gpu = "nvidia.com/GA102GL_A10"
	nic = "intel.com/X710"
)

const nodeLeases = "kube-node-lease"

// hostAddress is outside of this machine, and nobody connects to it.
func hostAddress(host string) string { return fmt.Sprintf("192.0.2.%d", 10+int(host[len(host)-1]-'0')) }
