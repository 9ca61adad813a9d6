// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const adminToken = "end-to-end-administrator"

// auditPolicy logs the plugin's requests without bodies, which the front door records.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users: ["system:serviceaccount:` + Namespace + `:` + serviceAccount + `"]
  - level: None
`

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
		"--audit-policy-file", file("audit-policy.yaml", auditPolicy),
		"--audit-log-path", auditLog(dir),
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

// startControllerManager runs two controllers: the garbage collector removes what
// a VM owned, the other one removes the finalizer of unused claims. The
// definitions must exist before: the collector discovers new kinds only twice a
// minute (kubernetes/kubernetes:cmd/kube-controller-manager/app/core.go,
// startGarbageCollectorController).
func startControllerManager(t testing.TB, dir string, admin *Kube, certificates *Certificates) {
	t.Helper()
	start(t, dir, "kube-controller-manager", exec.Command(part(t, "kube", "kube-controller-manager"),
		"--kubeconfig", WriteKubeconfig(t, filepath.Join(dir, "controller-manager.kubeconfig"), admin.URL, certificates.CAFile, admin.Token),
		"--controllers", "garbage-collector-controller,persistentvolumeclaim-protection-controller",
		"--leader-elect=false", "--bind-address", loopback, "--secure-port", "0",
		"--cert-dir", dir,
	))
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

// applyDefinitions installs KubeVirt's own definitions and our definitions of
// Harvester's kinds, and waits until their resources are served.
func applyDefinitions(t testing.TB, admin *Kube) {
	t.Helper()
	kubevirt := must[[]byte](t, "KubeVirt's definitions")(exec.Command(part(t, "kubevirt", "kubevirt-crds")).Output())
	definitions := must[[]Object](t, "KubeVirt's definitions")(decodeYAML(kubevirt))
	definitions = append(definitions, must[[]Object](t, "Harvester's definitions")(readYAML(testdata("harvester-crds.yaml")))...)
	check(t, "definitions", admin.Apply(definitions))
	awaitServed(t, admin, definitions)
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
