// SPDX-License-Identifier: Apache-2.0

// Registers nodes that have no machine with a Nomad server, as a client does, and sends their
// heartbeats until it ends. Its argument is the server's RPC address; each line of its input is a
// node in JSON, and each is answered by a line: "ok", or what is wrong.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad/helper/pool"
	"github.com/hashicorp/nomad/nomad/structs"
)

const region = "global"

// Node is what a node has. All its drivers are healthy.
type Node struct {
	ID, Name, Datacenter, Class string
	CPU, MemoryMB, DiskMB       int64
	Cores                       int
	Drivers                     []string
	Attributes, Meta            map[string]string
	Devices                     map[string]int // GPUs of nvidia, by name
}

func (n Node) toNomad() *structs.Node {
	cores := make([]uint16, n.Cores)
	for i := range cores {
		cores[i] = uint16(i)
	}
	network := structs.NodeNetworkAddress{Alias: "default", Address: "192.0.2.1", Family: structs.NodeNetworkAF_IPv4}
	node := &structs.Node{
		ID: n.ID, SecretID: n.ID, Name: n.Name, Datacenter: n.Datacenter, NodeClass: n.Class,
		Attributes: map[string]string{"unique.hostname": n.Name}, Meta: n.Meta,
		Drivers: map[string]*structs.DriverInfo{}, Status: structs.NodeStatusReady,
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: n.CPU, TotalCpuCores: uint16(n.Cores), ReservableCpuCores: cores},
			Memory: structs.NodeMemoryResources{MemoryMB: n.MemoryMB},
			Disk:   structs.NodeDiskResources{DiskMB: n.DiskMB},
			Networks: []*structs.NetworkResource{
				{Mode: "host", Device: "eth0", CIDR: network.Address + "/32", IP: network.Address, MBits: 1000}},
			NodeNetworks: []*structs.NodeNetworkResource{
				{Mode: "host", Device: "eth0", Speed: 1000, Addresses: []structs.NodeNetworkAddress{network}}},
		},
		ReservedResources: &structs.NodeReservedResources{},
	}
	for key, value := range n.Attributes {
		node.Attributes[key] = value
	}
	for _, driver := range n.Drivers {
		node.Drivers[driver] = &structs.DriverInfo{Detected: true, Healthy: true}
		node.Attributes["driver."+driver] = "1"
	}
	for name, count := range n.Devices {
		device := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: name}
		for i := range count {
			device.Instances = append(device.Instances, &structs.NodeDevice{ID: fmt.Sprint(n.ID, i), Healthy: true})
		}
		node.NodeResources.Devices = append(node.NodeResources.Devices, device)
	}
	return node
}

type registrar struct {
	server      net.Addr
	connections *pool.ConnPool
	lock        sync.Mutex
	ids         map[string]bool
}

func (r *registrar) call(method string, arguments any) error {
	var reply structs.NodeUpdateResponse
	return r.connections.RPC(region, r.server, method, arguments, &reply)
}

func (r *registrar) register(line []byte) error {
	var node Node
	if err := json.Unmarshal(line, &node); err != nil {
		return err
	}
	request := &structs.NodeRegisterRequest{
		Node: node.toNomad(), WriteRequest: structs.WriteRequest{Region: region}}
	if err := r.call("Node.Register", request); err != nil {
		return err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.ids[node.ID] = true
	return nil
}

// beat sends one heartbeat of each node. A node that was purged has no more.
func (r *registrar) beat() {
	r.lock.Lock()
	defer r.lock.Unlock()
	for id := range r.ids {
		request := &structs.NodeUpdateStatusRequest{
			NodeID: id, Status: structs.NodeStatusReady, WriteRequest: structs.WriteRequest{Region: region}}
		if err := r.call("Node.UpdateStatus", request); err != nil && strings.Contains(err.Error(), "node not found") {
			delete(r.ids, id)
		}
	}
}

func main() {
	server, err := net.ResolveTCPAddr("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := &registrar{server: server, ids: map[string]bool{},
		connections: pool.NewPool(hclog.NewNullLogger(), time.Minute, 16, nil)}
	go func() {
		for range time.Tick(time.Second) {
			r.beat()
		}
	}()
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if err := r.register(input.Bytes()); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("ok")
		}
	}
}
