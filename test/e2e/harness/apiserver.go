// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const adminToken = "end-to-end-administrator"

// auditPolicy logs the plugins' requests without bodies, which the front doors record.
func auditPolicy() string {
	var users []string
	for n := range mostNamespaces {
		users = append(users, fmt.Sprintf("%q", serviceAccountUser(namespaceName(n+1))))
	}
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users: [` + strings.Join(users, ", ") + `]
  - level: None
`
}

func serviceAccountUser(namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + serviceAccount
}

// startAPIServer runs the API server with RBAC; returns an administrator's client.
func startAPIServer(t testing.TB, dir, etcd string, certificates *Certificates) (*Kube, *Process) {
	t.Helper()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		check(t, name, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	port := freePort(t)
	url := fmt.Sprintf("https://%s:%d", loopback, port)
	process := start(t, dir, "kube-apiserver", exec.Command(part(t, "kube", "kube-apiserver"),
		"--etcd-servers", etcd,
		"--bind-address", loopback, "--secure-port", fmt.Sprint(port), "--advertise-address", loopback,
		"--endpoint-reconciler-type", "none",
		"--cert-dir", dir,
		"--tls-cert-file", certificates.CertFile, "--tls-private-key-file", certificates.KeyFile,
		"--token-auth-file", file("tokens.csv", adminToken+`,administrator,administrator,"system:masters"`+"\n"),
		"--service-account-issuer", url,
		"--service-account-key-file", certificates.ServiceAccountKey,
		"--service-account-signing-key-file", certificates.ServiceAccountKey,
		"--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.96.0.0/24",
		"--requestheader-client-ca-file", certificates.CAFile, "--requestheader-allowed-names", frontProxy,
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", certificates.CertFile, "--proxy-client-key-file", certificates.KeyFile,
		"--audit-policy-file", file("audit-policy.yaml", auditPolicy()),
		"--audit-log-path", auditLog(dir),
		// Without copies of its cache a page of a list expires at etcd's compaction, which a test can ask for.
		"--feature-gates", "ListFromCacheSnapshot=false",
	))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: certificates.Pool}, MaxIdleConnsPerHost: 16,
	}}
	t.Cleanup(client.CloseIdleConnections)
	Eventually(t, 4*time.Minute, "the API server is ready", func() error {
		return answersOK(process, client, url+"/readyz")
	})
	return &Kube{URL: url, Token: adminToken, HTTP: client}, process
}

// WriteKubeconfig writes a kubeconfig for one server and one token.
func WriteKubeconfig(t testing.TB, path, server, caFile, token string) string {
	t.Helper()
	check(t, path, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: harvester
contexts: [{name: harvester, context: {cluster: harvester, user: user}}]
clusters: [{name: harvester, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: user, user: {token: %q}}]
`, server, caFile, token), 0o600))
	return path
}

// awaitServed waits until the resources of definitions are served.
func awaitServed(t testing.TB, admin *Kube, definitions []Object) {
	t.Helper()
	for _, definition := range definitions {
		version := ""
		for _, v := range definition.List("spec", "versions") {
			if v.Bool("served") {
				version = v.Str("name")
			}
		}
		resource := Resource{definition.Str("spec", "group"), version, definition.Str("spec", "names", "plural")}
		Eventually(t, time.Minute, definition.Name()+" is served", func() error {
			_, err := admin.List(resource, "", "")
			return err
		})
	}
}

func testdata(name string) string { return filepath.Join(Root, "test", "e2e", "testdata", name) }
