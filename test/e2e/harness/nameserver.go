// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net"
	"testing"
)

const dnsPort = 53

// startNameserver answers every question for an IPv4 address with the loopback's, and every other one
// with nothing. Returns its address, whose port is the one of every resolver (RFC 1035, section 4).
func startNameserver(t testing.TB) string {
	t.Helper()
	address := must[string](t, "an address for a name server")(nextHost(dnsPort))
	conn := must[*net.UDPConn](t, "name server")(net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address), Port: dnsPort}))
	t.Cleanup(func() { conn.Close() })
	go func() {
		packet := make([]byte, 512)
		for {
			size, client, err := conn.ReadFromUDP(packet)
			if err != nil {
				return
			}
			if reply := answerTo(packet[:size]); reply != nil {
				_, _ = conn.WriteToUDP(reply, client)
			}
		}
	}()
	return address
}

// answerTo returns nil for what is no query.
func answerTo(query []byte) []byte {
	const header = 12
	end := header
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end]) // the next label of the name
	}
	end += 1 + 4 // the root, type and class
	if end > len(query) {
		return nil
	}
	const typeA = 1
	reply := []byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0} // a response; recursion is available
	reply = append(reply, query[header:end]...)
	if query[end-3] == typeA {
		reply[7] = 1
		reply = append(reply, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return reply
}
