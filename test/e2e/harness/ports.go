// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

const loopback = "127.0.0.1"

// Stacks run in parallel, also with those of other processes: this process hands
// out each port only once, and each process starts at a different one. Ports are
// below the kernel's ephemeral range (ip_local_port_range), so that no other
// program gets one before the program that will listen on it.
const (
	firstPort, ports = 10_000, 20_000
	hosts            = 250 * 250
)

var (
	takenLock sync.Mutex
	nextPort  = os.Getpid() * 97 % ports
	nextIndex = os.Getpid() * 97 % hosts
)

// freePort returns a free port of the loopback address.
func freePort(t testing.TB) int {
	t.Helper()
	takenLock.Lock()
	defer takenLock.Unlock()
	for range ports {
		port := firstPort + nextPort
		nextPort = (nextPort + 1) % ports
		if isFree(loopback, port) {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// nextHost returns a new loopback address, for one machine, on which a port is free.
func nextHost(port int) (string, error) {
	takenLock.Lock()
	defer takenLock.Unlock()
	for range hosts {
		address := fmt.Sprintf("127.77.%d.%d", nextIndex/250, nextIndex%250+1)
		nextIndex = (nextIndex + 1) % hosts
		if isFree(address, port) {
			return address, nil
		}
	}
	return "", fmt.Errorf("no loopback address has port %d free", port)
}

func isFree(address string, port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
