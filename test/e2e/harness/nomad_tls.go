// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NomadTLS is what the clients of a server with TLS have: files that Nomad's own commands made.
type NomadTLS struct {
	CA, Cert, Key string // paths

	transport *http.Transport
}

// The server takes HTTP and RPC from those with a certificate only, and a client that checks its
// name takes it for a server of the region.
const nomadTLSBlock = `
tls {
  http                   = true
  rpc                    = true
  ca_file                = %q
  cert_file              = %q
  key_file               = %q
  verify_server_hostname = true
  verify_https_client    = true
}
`

// newNomadTLS runs the commands that examples/cloud-init-tls.yaml names, and returns the server's
// block, too.
func newNomadTLS(t testing.TB, dir string) (*NomadTLS, string) {
	t.Helper()
	check(t, dir, os.Mkdir(dir, 0o700))
	for _, arguments := range [][]string{{"ca", "create"}, {"cert", "create", "-server"}, {"cert", "create", "-client"}} {
		cmd := exec.Command(NomadProgram(t), append([]string{"tls"}, arguments...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("nomad tls %v: %v\n%s", arguments, err, out)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	n := &NomadTLS{CA: file("nomad-agent-ca.pem"), Cert: file("global-client-nomad.pem"), Key: file("global-client-nomad-key.pem")}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(must[[]byte](t, n.CA)(os.ReadFile(n.CA)))
	pair := must[tls.Certificate](t, n.Cert)(tls.LoadX509KeyPair(n.Cert, n.Key))
	n.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}}}
	t.Cleanup(n.transport.CloseIdleConnections)
	return n, fmt.Sprintf(nomadTLSBlock, n.CA, file("global-server-nomad.pem"), file("global-server-nomad-key.pem"))
}

// environment is that of the autoscaler's agent: what it, and the plugin after it, reads of Nomad's
// own variables, and what the user data takes of them.
func (n *NomadTLS) environment(t testing.TB) []string {
	t.Helper()
	variables := []string{"NOMAD_CACERT=" + n.CA, "NOMAD_CLIENT_CERT=" + n.Cert, "NOMAD_CLIENT_KEY=" + n.Key}
	for name, path := range map[string]string{"CA": n.CA, "CERT": n.Cert, "KEY": n.Key} {
		text := base64.StdEncoding.EncodeToString(must[[]byte](t, path)(os.ReadFile(path)))
		variables = append(variables, "HARVESTER_TEMPLATE_NOMAD_"+name+"="+text)
	}
	return variables
}
