// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// systemNamespace is where Harvester and KubeVirt run.
const systemNamespace = "harvester-system"

// release is what a cluster consists of.
type release struct{ harvester, kubevirt, harvesterPart, kubevirtPart string }

// releases are those that the tests can run on, by the value of NOMAD_HARVESTER_E2E_HARVESTER.
var releases = map[string]release{
	"":    {"v1.8.0", "v1.7.0", "harvester", "kubevirt"},
	"1.6": {"v1.6.0", "v1.5.0", "harvester16", "kubevirt15"},
}

// NewestHarvester returns whether the cluster is of the newest release that the tests know.
func NewestHarvester() bool { return os.Getenv("NOMAD_HARVESTER_E2E_HARVESTER") == "" }

// A program that cannot renew its lease of leadership ends, and kubelet would start it again. Nobody else
// wants to lead here, and this machine may be busy.
var leaseDuration, renewDeadline = fmt.Sprint(180 * time.Second * slow), fmt.Sprint(150 * time.Second * slow)

// startHarvester runs Harvester's server (with every controller) and webhook server, KubeVirt's
// virt-controller and virt-api and Kubernetes' scheduler on an API server that has the definitions;
// players do what needs a machine.
func (c *Cluster) startHarvester(t testing.TB) {
	t.Helper()
	startKubeControllers(t, c.dir, c.Kube, c.Certificates)
	text := string(must[[]byte](t, "cluster.yaml")(os.ReadFile(testdata("cluster.yaml"))))
	objects := must[[]Object](t, "cluster.yaml")(decodeYAML([]byte(strings.ReplaceAll(text, "KUBEVIRT_VERSION", c.release.kubevirt))))
	check(t, "the cluster's objects", c.Kube.Apply(objects))
	c.players = startPlayers(t, c)
	c.startScheduler(t)
	environment := c.startHarvesterWebhook(t) // it waits for 15 s before it registers itself
	c.startKubeVirt(t)
	// It makes definitions that the webhook server needs, and waits for that server for three minutes.
	c.startHarvesterServer(t, environment)
	c.awaitPrograms(t, "KubeVirt and Harvester admit a VM", func() error { return admitted(c.Kube) })
	c.awaitPrograms(t, "Harvester's controllers run", func() error {
		lease, err := c.Kube.Get(Leases, "kube-system", "harvester-controllers")
		if err == nil && lease.Str("spec", "holderIdentity") == "" {
			err = errors.New("nobody leads")
		}
		return err
	})
}

// awaitPrograms waits until check returns nil. A program that ends meanwhile, because another one is not there
// yet or this machine is busy, is started again, as kubelet would.
func (c *Cluster) awaitPrograms(t testing.TB, what string, check func() error) {
	t.Helper()
	Eventually(t, 5*time.Minute, what, func() error {
		for _, process := range []*Process{c.VirtAPI, c.VirtController, c.HarvesterWebhook, c.HarvesterServer} {
			if process != nil && !process.Running() {
				t.Logf("%s has ended, and is started again:\n%s", process.Name, tail(process.Log, 5))
				process.Restart(t)
			}
		}
		return check()
	})
}

// admitted returns nil if the mutators of KubeVirt and Harvester take part in a VM's creation.
func admitted(admin *Kube) error {
	response, body, err := admin.Post(VirtualMachines, "default", SampleVM("default", "admission"), true)
	if err != nil {
		return err
	}
	stored, err := decodeObject(body)
	if err != nil {
		return err
	}
	guest := stored.Obj("spec", "template", "spec")
	if guest.Str("architecture") == "" { // KubeVirt's default
		return fmt.Errorf("KubeVirt was not asked: %d %s", response.StatusCode, body)
	}
	if guest.Str("domain", "resources", "requests", "cpu") == "" { // of Harvester's overcommit ratios
		return fmt.Errorf("Harvester was not asked: %d %s", response.StatusCode, body)
	}
	return nil
}

// startKubeControllers runs those controllers of Kubernetes that have a part in the life of a VM, each
// with an account of its own: Harvester's webhook knows the garbage collector by its name.
func startKubeControllers(t testing.TB, dir string, admin *Kube, certificates *Certificates) {
	t.Helper()
	start(t, dir, "kube-controller-manager", exec.Command(part(t, "kube", "kube-controller-manager"),
		"--kubeconfig", WriteKubeconfig(t, filepath.Join(dir, "controller-manager.kubeconfig"), admin.URL, certificates.CAFile, admin.Token),
		"--use-service-account-credentials",
		"--controllers", strings.Join([]string{
			"garbage-collector-controller", "namespace-controller", "serviceaccount-controller", "resourcequota-controller",
			"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
			"disruption-controller", "pod-garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller",
			"clusterrole-aggregation-controller",
		}, ","),
		"--kube-api-qps", "200", "--kube-api-burst", "400",
		"--leader-elect=false", "--bind-address", loopback, "--secure-port", "0",
		"--cert-dir", dir,
	))
}

func (c *Cluster) startScheduler(t testing.TB) {
	t.Helper()
	start(t, c.dir, "kube-scheduler", exec.Command(part(t, "scheduler", "kube-scheduler"),
		"--kubeconfig", WriteKubeconfig(t, filepath.Join(c.dir, "scheduler.kubeconfig"), c.Kube.URL, c.Certificates.CAFile, c.Kube.Token),
		"--leader-elect=false", "--secure-port", "0", "--cert-dir", c.dir,
	))
}

// asPod runs a command with the file that tells a pod its namespace, in a mount namespace of its own.
func asPod(command ...string) *exec.Cmd {
	const script = `mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount &&
printf %s "$1" >/run/secrets/kubernetes.io/serviceaccount/namespace && shift && exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "pod", systemNamespace}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return cmd
}

// account makes a ServiceAccount with all rights; returns its token's file and a kubeconfig.
func (c *Cluster) account(t testing.TB, name string) (token, kubeconfig string) {
	t.Helper()
	check(t, name, c.Kube.Apply([]Object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": Object{"name": name, "namespace": systemNamespace}},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": Object{"name": name},
			"roleRef":  Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []Object{{"kind": "ServiceAccount", "name": name, "namespace": systemNamespace}},
		},
	}))
	token = filepath.Join(c.dir, name+".token")
	check(t, token, os.WriteFile(token, []byte(must[string](t, token)(c.Kube.TokenFor(systemNamespace, name))), 0o600))
	kubeconfig = filepath.Join(c.dir, name+".kubeconfig")
	check(t, kubeconfig, os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: harvester
contexts: [{name: harvester, context: {cluster: harvester, user: user}}]
clusters: [{name: harvester, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: user, user: {tokenFile: %q}}]
`, c.Kube.URL, c.Certificates.CAFile, token), 0o600))
	return token, kubeconfig
}

// localService is a Service whose name the API server resolves to a loopback address without kube-proxy.
func localService(name, address string, port int) Object {
	return Object{
		"apiVersion": "v1", "kind": "Service", "metadata": Object{"name": name, "namespace": systemNamespace},
		"spec": Object{"type": "ExternalName", "externalName": address, "ports": []Object{{"port": port}}},
	}
}

// startKubeVirt installs what KubeVirt's operator would, and runs its two programs of a control plane.
func (c *Cluster) startKubeVirt(t testing.TB) {
	t.Helper()
	port, handlerPort := freePort(t), freePort(t)
	c.players.serveHandler(t, c, handlerPort)
	c.players.addHandlerPods(t)
	authority := string(must[[]byte](t, c.Certificates.CAFile)(os.ReadFile(c.Certificates.CAFile)))
	objects := []Object{localService("virt-api", loopback, port)}
	for _, name := range []string{"kubevirt-ca", "kubevirt-export-ca"} {
		objects = append(objects, Object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": name, "namespace": systemNamespace},
			"data": Object{"ca-bundle": authority},
		})
	}
	check(t, "KubeVirt's objects", c.Kube.Apply(objects))
	certificate, key := c.Certificates.CertFile, c.Certificates.KeyFile
	_, kubeconfig := c.account(t, "kubevirt-apiserver")
	c.VirtAPI = start(t, c.dir, "virt-api", asPod(part(t, c.release.kubevirtPart, "virt-api"), "--kubeconfig", kubeconfig,
		"--listen", loopback, "--port", fmt.Sprint(port), "--console-server-port", fmt.Sprint(handlerPort), "--externally-managed",
		"--tls-cert-file", certificate, "--tls-key-file", key, "--handler-cert-file", certificate, "--handler-key-file", key))
	_, kubeconfig = c.account(t, "kubevirt-controller")
	c.VirtController = start(t, c.dir, "virt-controller", asPod(part(t, c.release.kubevirtPart, "virt-controller"), "--kubeconfig", kubeconfig,
		"--leader-elect-lease-duration", leaseDuration, "--leader-elect-renew-deadline", renewDeadline,
		"--listen", loopback, "--port", fmt.Sprint(freePort(t)), "--launcher-image", "virt-launcher",
		"--exporter-image", "virt-exportserver", "--prom-cert-file", certificate, "--prom-key-file", key))
	Eventually(t, 3*time.Minute, "virt-api listens", func() error {
		return answersOK(c.VirtAPI, c.Kube.HTTP, fmt.Sprintf("https://%s:%d/apis/subresources.kubevirt.io/v1/healthz", loopback, port))
	})
	check(t, "KubeVirt's webhooks", c.Kube.Apply(withEndpoint(c.kubevirtObjects, authority, port)))
}

// withEndpoint adds what KubeVirt's operator knows at run time to webhook configurations and APIServices.
func withEndpoint(objects []Object, authority string, port int) []Object {
	bundle := base64.StdEncoding.EncodeToString([]byte(authority))
	for _, object := range objects {
		if spec := object.Obj("spec"); spec != nil { // an APIService
			spec["caBundle"], spec.Obj("service")["port"] = bundle, port
		}
		for _, webhook := range object.List("webhooks") {
			client := webhook.Obj("clientConfig")
			client["caBundle"], client.Obj("service")["port"] = bundle, port
		}
	}
	return objects
}

// startHarvesterWebhook runs Harvester's webhook server; returns the environment of Harvester's programs. Its
// configurations name port 443, which they get on an address of this stack; the program listens on another one.
func (c *Cluster) startHarvesterWebhook(t testing.TB) []string {
	t.Helper()
	_, kubeconfig := c.account(t, "harvester")
	environment := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "NAMESPACE=" + systemNamespace, "HCI_MODE=true", "KUBECONFIG=" + kubeconfig,
		"HARVESTER_SERVER_VERSION=" + c.release.harvester,
		"CATTLE_ELECTION_LEASE_DURATION=" + leaseDuration, "CATTLE_ELECTION_RENEW_DEADLINE=" + renewDeadline,
		"HARVESTER_CONTROLLER_USER_NAME=system:serviceaccount:" + systemNamespace + ":harvester",
	}
	address := must[string](t, "an address for Harvester's webhook")(nextHost(443))
	port := freePort(t)
	forward(t, address+":443", fmt.Sprintf("%s:%d", loopback, port))
	check(t, "Harvester's Services", c.Kube.Apply([]Object{localService("harvester-webhook", address, 443)}))
	webhook := exec.Command(part(t, c.release.harvesterPart, "harvester-webhook"),
		"--https-port", fmt.Sprint(port), "--profile-listen-address", fmt.Sprintf("%s:%d", loopback, freePort(t)))
	webhook.Env = environment
	c.HarvesterWebhook = start(t, c.dir, "harvester-webhook", webhook)
	return environment
}

func (c *Cluster) startHarvesterServer(t testing.TB, environment []string) {
	t.Helper()
	port := freePort(t)
	c.steve = fmt.Sprintf("http://%s:%d", loopback, port)
	server := exec.Command(part(t, c.release.harvesterPart, "harvester-server"),
		"--https-port", fmt.Sprint(freePort(t)), "--http-port", fmt.Sprint(port),
		"--profile-listen-address", fmt.Sprintf("%s:%d", loopback, freePort(t)))
	server.Env = environment
	c.HarvesterServer = start(t, c.dir, "harvester-server", server)
}

// forward passes the bytes of connections to one address on to another one, until the end of the run.
func forward(t testing.TB, from, to string) {
	t.Helper()
	serveForward(t, must[net.Listener](t, from)(net.Listen("tcp", from)), to)
}

func serveForward(t testing.TB, listener net.Listener, to string) {
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(server, client)
					_ = server.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(client, server)
			}()
		}
	}()
}

// applyDefinitions installs every definition of KubeVirt, Harvester and what they use; it keeps
// KubeVirt's other objects for later. Returns when all are served.
func (c *Cluster) applyDefinitions(t testing.TB) {
	t.Helper()
	kubevirt := must[[]byte](t, "KubeVirt's objects")(exec.Command(part(t, c.release.kubevirtPart, "kubevirt-objects"), systemNamespace).Output())
	definitions := must[[]Object](t, "KubeVirt's objects")(decodeYAML(kubevirt))
	c.kubevirtObjects = slices.DeleteFunc(slices.Clone(definitions), isDefinition)
	definitions = append(definitions, must[[]Object](t, "Harvester's definitions")(readYAML(part(t, c.release.harvesterPart, "definitions.yaml")))...)
	definitions = append(definitions, must[[]Object](t, "definitions")(readYAML(testdata("harvester-crds.yaml")))...)
	definitions = slices.DeleteFunc(definitions, func(o Object) bool { return !isDefinition(o) })
	definitions = append(definitions, rancherDefinitions()...)
	seen := map[string]bool{}
	definitions = slices.DeleteFunc(definitions, func(o Object) bool {
		twice := seen[o.Name()]
		seen[o.Name()] = true
		return twice
	})
	for _, definition := range definitions {
		delete(definition, "status")
		allowNoDataEngine(definition)
		_, err := c.Kube.Do(http.MethodPost, ResourceOf(definition).Path(""), nil, jsonContent, definition)
		check(t, definition.Name(), err)
	}
	awaitServed(t, c.Kube, definitions)
}

// allowNoDataEngine lets backing images be without a data engine, which Longhorn's own webhook, which does not run,
// would set.
func allowNoDataEngine(definition Object) {
	if definition.Name() != "backingimages.longhorn.io" {
		return
	}
	for _, version := range definition.List("spec", "versions") {
		if engine := version.Obj("schema", "openAPIV3Schema", "properties", "spec", "properties", "dataEngine"); engine != nil {
			delete(engine, "enum")
		}
	}
}

func isDefinition(o Object) bool { return o.Str("kind") == "CustomResourceDefinition" }

// HasCondition returns whether a condition of an object's status is true.
func HasCondition(o Object, kind string) bool {
	return slices.ContainsFunc(o.List("status", "conditions"), func(c Object) bool {
		return c.Str("type") == kind && c.Str("status") == "True"
	})
}

// rancherDefinitions are of kinds that Harvester watches, and that neither its chart nor its server
// defines: Rancher, Fleet and RKE2 do. They have no schema.
func rancherDefinitions() []Object {
	var definitions []Object
	for _, kind := range []struct{ group, version, plural, name, scope string }{
		{"management.cattle.io", "v3", "managedcharts", "ManagedChart", "Namespaced"},
		{"management.cattle.io", "v3", "clusters", "Cluster", "Cluster"},
		{"catalog.cattle.io", "v1", "apps", "App", "Namespaced"},
		{"catalog.cattle.io", "v1", "clusterrepos", "ClusterRepo", "Cluster"},
		{"helm.cattle.io", "v1", "helmcharts", "HelmChart", "Namespaced"},
		{"helm.cattle.io", "v1", "helmchartconfigs", "HelmChartConfig", "Namespaced"},
		{"fleet.cattle.io", "v1alpha1", "bundles", "Bundle", "Namespaced"},
		{"fleet.cattle.io", "v1alpha1", "bundledeployments", "BundleDeployment", "Namespaced"},
	} {
		definitions = append(definitions, Object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": Object{"name": kind.plural + "." + kind.group},
			"spec": Object{
				"group": kind.group, "scope": kind.scope,
				"names": Object{"plural": kind.plural, "singular": strings.ToLower(kind.name), "kind": kind.name},
				"versions": []Object{{
					"name": kind.version, "served": true, "storage": true, "subresources": Object{"status": Object{}},
					"schema": Object{"openAPIV3Schema": Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		})
	}
	return definitions
}
