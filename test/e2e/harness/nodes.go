// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Nodes registers nodes that have no machine with a Nomad server without ACLs, and keeps them alive.
// Nomad places work on them, which stays pending.
type Nodes struct {
	lock   sync.Mutex
	input  io.Writer
	output *bufio.Scanner
}

// FakeNode is a node without a machine: test/parts/nomad/nodes.
type FakeNode struct {
	ID, Name, Datacenter, Class string
	CPU, MemoryMB, DiskMB       int64
	Cores                       int
	Drivers                     []string
	Attributes, Meta            map[string]string
	Devices                     map[string]int
}

// StartNodes runs the program that registers nodes until the end of the test.
func StartNodes(t testing.TB, n *Nomad) *Nodes {
	t.Helper()
	cmd := exec.Command(part(t, "nomad", "nomad-nodes"), n.RPC)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	input := must[io.WriteCloser](t, "nomad-nodes")(cmd.StdinPipe())
	output := must[io.ReadCloser](t, "nomad-nodes")(cmd.StdoutPipe())
	check(t, "nomad-nodes", spawn(cmd))
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	return &Nodes{input: input, output: bufio.NewScanner(output)}
}

// Register registers a node, which is ready at once.
func (n *Nodes) Register(t testing.TB, node FakeNode) {
	t.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	line := must[[]byte](t, "a node")(json.Marshal(node))
	_, err := fmt.Fprintf(n.input, "%s\n", line)
	check(t, "register node "+node.Name, err)
	if !n.output.Scan() || strings.TrimSpace(n.output.Text()) != "ok" {
		t.Fatalf("register node %s: %s %v", node.Name, n.output.Text(), n.output.Err())
	}
}
