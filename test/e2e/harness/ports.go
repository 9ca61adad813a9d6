package harness

import (
	"fmt"
	"net"
	"testing"
)

const loopback = "127.0.0.1"

// freePort returns a port of an address that nobody listens on. It is given back
// before the program that wants it can take it, so nobody else may be handed it
// meanwhile: the kernel hands out ephemeral ports in a random order.
func freePort(t testing.TB, address string) int {
	t.Helper()
	listener := must[net.Listener](t, "a free port of "+address)(net.Listen("tcp", address+":0"))
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// freeHosts returns a function that gives loopback addresses, one after the
// other, on which a port is free: a machine's own address.
func freeHosts(port int) func() (string, error) {
	next := 0
	return func() (string, error) {
		for ; next < 250*250; next++ {
			address := fmt.Sprintf("127.77.%d.%d", next/250, next%250+1)
			listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
			if err == nil {
				next++
				return address, listener.Close()
			}
		}
		return "", fmt.Errorf("no loopback address has port %d free", port)
	}
}
