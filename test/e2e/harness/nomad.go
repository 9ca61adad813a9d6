// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Nomad is a client of a Nomad server with one token.
type Nomad struct {
	URL   string
	RPC   string // host:port that clients join
	Token string
	TLS   *NomadTLS // nil: the server speaks plain text
}

// The heartbeats are far shorter than Nomad's defaults: a lost node is down within
// seconds, also after a restart of the server.
const nomadServerConfig = `
datacenter           = "dc1"
data_dir             = %q
bind_addr            = "127.0.0.1"
disable_update_check = true
log_level            = "WARN"
ports {
  http = %d
  rpc  = %d
  serf = %d
}
advertise {
  http = "127.0.0.1"
  rpc  = %q
  serf = "127.0.0.1"
}
server {
  enabled                = true
  bootstrap_expect       = 1
  min_heartbeat_ttl      = "2s"
  heartbeat_grace        = %q
  failover_heartbeat_ttl = "10s"
  %s
}
acl { enabled = %t }
%s
telemetry {
  collection_interval = "1s"
  prometheus_metrics  = true
}
consul {
  auto_advertise      = false
  server_auto_join    = false
  client_auto_join    = false
}
`

// NomadOptions say how a server differs from that of a stack.
type NomadOptions struct {
	Server      string // more settings of the server
	WithoutACLs bool
	TLS         bool // it speaks TLS only, to those who have a certificate
	Guests      bool // its clients are guests that QEMU boots, and have an address for it
	RealHost    bool // the guests are those of StartRealHost, which have another one
}

// NomadProgram returns the path of the Nomad that runs as server and clients: $NOMAD_BINARY, or the real part.
func NomadProgram(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("NOMAD_BINARY"); path != "" {
		return path
	}
	return part(t, "nomad", "nomad")
}

// StartNomad starts only a Nomad server, and what boots its machines. Tests run in
// parallel.
func StartNomad(t *testing.T, options NomadOptions) *Stack {
	t.Helper()
	takeTurn(t, slots)
	s := &Stack{Dir: temporaryDir(t)}
	s.Nomad, s.NomadServer = startNomad(t, s.Dir, options)
	bootstrapNomad(t, s.Nomad, s.NomadServer, options)
	s.Machines = newMachines(t, filepath.Join(s.Dir, "machines"), s.Nomad)
	if options.Guests {
		s.Machines.image = guestDisk(t)
	}
	return s
}

// startNomad starts a server; bootstrapNomad waits until it is ready.
func startNomad(t testing.TB, dir string, options NomadOptions) (*Nomad, *Process) {
	t.Helper()
	http_, rpc := freePort(t), freePort(t)
	n := &Nomad{URL: fmt.Sprintf("http://%s:%d", loopback, http_), RPC: fmt.Sprintf("%s:%d", loopback, rpc)}
	block, grace := "", "10s" // a client of a busy machine may be late
	if options.Guests {
		n.RPC, grace = fmt.Sprintf("%s:%d", guestsServer, rpc), "30s" // emulation is slow
	}
	if options.RealHost {
		n.RPC = fmt.Sprintf("%s:%d", realHostAddress, rpc)
	}
	if options.TLS {
		n.TLS, block = newNomadTLS(t, filepath.Join(dir, "nomad-tls"))
		n.URL = strings.Replace(n.URL, "http:", "https:", 1)
	}
	config := filepath.Join(dir, "nomad-server.hcl")
	check(t, config, os.WriteFile(config, fmt.Appendf(nil, nomadServerConfig,
		filepath.Join(dir, "nomad-server"), http_, rpc, freePort(t), n.RPC, grace, options.Server, !options.WithoutACLs, block), 0o600))
	return n, start(t, dir, "nomad-server", exec.Command(NomadProgram(t), "agent", "-config", config))
}

// bootstrapNomad waits for the server and gives the client a management token.
func bootstrapNomad(t testing.TB, n *Nomad, process *Process, options NomadOptions) {
	t.Helper()
	Eventually(t, time.Minute, "Nomad's server leads, and its ACL system is bootstrapped", func() error {
		if !process.Running() {
			return fmt.Errorf("the server has ended:\n%s", tail(process.Log, 20))
		}
		if options.WithoutACLs {
			_, err := n.List("/v1/nodes")
			return err
		}
		token, err := n.Do(http.MethodPost, "/v1/acl/bootstrap", nil)
		n.Token = token.Str("SecretID")
		return err
	})
}

// Request sends a request and returns status, header and body.
func (n *Nomad) Request(method, path string, body any) (*http.Response, []byte, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, nil, err
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequest(method, n.URL+path, reader)
	if err != nil {
		return nil, nil, err
	}
	if n.Token != "" {
		request.Header.Set("X-Nomad-Token", n.Token)
	}
	client := &http.Client{Timeout: 30 * time.Second}
	if n.TLS != nil {
		client.Transport = n.TLS.transport
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response, data, err
}

func (n *Nomad) request(method, path string, body any) ([]byte, error) {
	response, data, err := n.Request(method, path, body)
	if err == nil && response.StatusCode >= 300 {
		err = &APIError{Code: response.StatusCode, Message: strings.TrimSpace(string(data))}
	}
	return data, err
}

// Do sends a request whose response is an object or empty.
func (n *Nomad) Do(method, path string, body any) (Object, error) {
	data, err := n.request(method, path, body)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil, err
	}
	return decodeObject(data)
}

// Get reads an object.
func (n *Nomad) Get(path string) (Object, error) { return n.Do(http.MethodGet, path, nil) }

// List reads a list of objects.
func (n *Nomad) List(path string) ([]Object, error) {
	data, err := n.request(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var objects []Object
	return objects, json.Unmarshal(data, &objects)
}

// Command runs Nomad's own command line in a directory and returns what it prints.
func (n *Nomad) Command(t testing.TB, dir string, arguments ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(NomadProgram(t), arguments...)
	cmd.Dir = dir
	cmd.Env = []string{"NOMAD_ADDR=" + n.URL, "NOMAD_TOKEN=" + n.Token}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Release is Nomad's major and minor version.
type Release struct{ Major, Minor int }

// Before returns whether a release came before another one.
func (r Release) Before(other Release) bool {
	return r.Major < other.Major || (r.Major == other.Major && r.Minor < other.Minor)
}

// Release returns that of the server.
func (n *Nomad) Release(t testing.TB) (r Release) {
	t.Helper()
	self := must[Object](t, "the server's version")(n.Get("/v1/agent/self"))
	if _, err := fmt.Sscanf(self.Str("member", "Tags", "build"), "%d.%d.", &r.Major, &r.Minor); err != nil {
		t.Fatalf("the server's version %q: %v", self.Str("member", "Tags", "build"), err)
	}
	return r
}

// NewToken creates a token whose only policy has these rules.
func (n *Nomad) NewToken(name, rules string) (string, error) {
	if _, err := n.Do(http.MethodPut, "/v1/acl/policy/"+name, Object{"Name": name, "Rules": rules}); err != nil {
		return "", err
	}
	token, err := n.Do(http.MethodPut, "/v1/acl/token", Object{"Name": name, "Type": "client", "Policies": []string{name}})
	return token.Str("SecretID"), err
}

// Metrics returns the metrics in Prometheus' format.
func (n *Nomad) Metrics() (string, error) {
	data, err := n.request(http.MethodGet, "/v1/metrics?format=prometheus", nil)
	return string(data), err
}

// Node returns the full node of that name that is not down, or nil.
func (n *Nomad) Node(name string) (Object, error) {
	nodes, err := n.List("/v1/nodes")
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if node.Str("Name") == name && node.Str("Status") != "down" {
			return n.Get("/v1/node/" + node.Str("ID"))
		}
	}
	return nil, nil
}

// Run registers a job.
func (n *Nomad) Run(t testing.TB, job Object) {
	t.Helper()
	_, err := n.Do(http.MethodPut, "/v1/jobs", Object{"Job": job})
	check(t, "job "+job.Str("ID"), err)
}

// Allocations returns the allocations of a job.
func (n *Nomad) Allocations(job string) ([]Object, error) {
	return n.List("/v1/job/" + job + "/allocations")
}

// RunningOn returns how many allocations of a job run on each node, by the node's
// name. Allocations with desired status "stop" do not count.
func (n *Nomad) RunningOn(job string) (map[string]int, error) {
	allocations, err := n.Allocations(job)
	running := map[string]int{}
	for _, allocation := range allocations {
		if allocation.Str("ClientStatus") == "running" && allocation.Str("DesiredStatus") == "run" {
			running[allocation.Str("NodeName")]++
		}
	}
	return running, err
}
