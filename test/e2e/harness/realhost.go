// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RealHost is one more host of a cluster that nobody plays: a machine in namespaces (testdata/real-host.sh) with
// containerd, runc, kubelet and KubeVirt's virt-handler, which make a VM's pod with KubeVirt's virt-launcher, libvirt and
// QEMU. QEMU emulates the processor. Of Longhorn there is nothing: a volume is a loop device of the host. Its VMs are in
// the pods' network (networks = "management"), in which they find Nomad's server, and nothing else.
type RealHost struct {
	Name string

	dir  string
	init *Process
	pid  int // of its process 1
	kube *Kube
}

// realHostAddress is the host's, and Nomad's server is there for its VMs (NomadOptions.RealHost).
const realHostAddress = "10.53.0.1"

// StartRealHost boots the host and makes it the only one on which VMs are placed, until the end of the test.
func (s *Stack) StartRealHost(t testing.TB) *RealHost {
	t.Helper()
	h := &RealHost{Name: "real-host-0", dir: filepath.Join(s.Dir, "h"), kube: s.Kube}
	script := testdata("real-host.sh")
	check(t, h.dir, os.Chmod(s.Dir, 0o755)) // QEMU is not root
	check(t, h.dir, os.Mkdir(h.dir, 0o755))
	t.Cleanup(func() {
		if out, err := exec.Command(script, "clean", h.dir).CombinedOutput(); err != nil {
			t.Errorf("%s clean: %v: %s", script, err, out)
		}
	})
	h.init = start(t, s.Dir, h.Name, exec.Command(script, "boot", h.dir, part(t, "host", "root"), h.Name))
	h.file(t, "pid", fmt.Sprint(h.init.Pid()))
	Eventually(t, time.Minute, h.Name+" is up", func() error {
		children, err := h.init.Children("bash")
		if told := tail(h.init.Log, 5); err == nil && (len(children) != 1 || told != "ready") {
			err = errors.New(told)
		}
		if err == nil {
			h.pid = children[0]
		}
		return err
	})

	h.connect(t, s)
	h.startRuntime(t)
	// In a directory without anything else: virt-handler reads its certificates again whenever a file beside them changes,
	// as its own log does at each reading.
	check(t, h.dir, os.Mkdir(filepath.Join(h.dir, "tls"), 0o755))
	for name, path := range map[string]string{"ca": s.Certificates.CAFile, "crt": s.Certificates.CertFile, "key": s.Certificates.KeyFile} {
		h.file(t, "tls/"+name, string(must[[]byte](t, path)(os.ReadFile(path))))
	}
	WriteKubeconfig(t, filepath.Join(h.dir, "kubeconfig"), s.Kube.URL, "/host/tls/ca", s.Kube.Token)
	h.startKubelet(t)
	for _, host := range HostNames() {
		must[Object](t, host)(s.Kube.Patch(Hosts, "", host, Object{"spec": Object{"unschedulable": true}}))
	}
	t.Cleanup(func() {
		for _, host := range HostNames() {
			_ = s.openHost(host)
		}
		_ = s.Kube.Delete(Hosts, "", h.Name)
	})
	s.players.setRealHost(h)
	t.Cleanup(func() { s.players.setRealHost(nil) })
	s.emulate(t, true)
	t.Cleanup(func() { s.emulate(t, nil) })
	h.startVirtHandler(t, s)
	Eventually(t, 3*time.Minute, "virt-handler lets VMs be placed on the host", func() error {
		host, err := s.Kube.Get(Hosts, "", h.Name)
		if err == nil && (host.Str("metadata", "labels", "kubevirt.io/schedulable") != "true" || !HasCondition(host, "Ready")) {
			err = fmt.Errorf("%v, %v", host.At("metadata", "labels"), host.At("status", "conditions"))
		}
		return err
	})
	return h
}

// emulate sets KubeVirt's useEmulation.
func (c *Cluster) emulate(t testing.TB, value any) {
	t.Helper()
	must[Object](t, "KubeVirt's configuration")(c.Kube.Patch(Resource{"kubevirt.io", "v1", "kubevirts"}, systemNamespace, "kubevirt",
		Object{"spec": Object{"configuration": Object{"developerConfiguration": Object{"useEmulation": value}}}}))
}

// file writes a file that the host sees as /host/NAME.
func (h *RealHost) file(t testing.TB, name, content string) {
	t.Helper()
	check(t, name, os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o644))
}

// command is one that runs on the host.
func (h *RealHost) command(arguments ...string) *exec.Cmd {
	return exec.Command(testdata("real-host.sh"), append([]string{"run", h.dir}, arguments...)...)
}

// run runs a script on the host.
func (h *RealHost) run(t testing.TB, script string) {
	t.Helper()
	if out, err := h.command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// connect gives the host its network and a way to the API server and to Nomad's.
func (h *RealHost) connect(t testing.TB, s *Stack) {
	t.Helper()
	h.run(t, "ip link add host type bridge && ip address add "+realHostAddress+"/24 dev host && ip link set host up && ip route add default dev host")
	api := strings.TrimPrefix(s.Kube.URL, "https://")
	h.forward(t, api, api)
	_, port, err := net.SplitHostPort(s.Nomad.RPC)
	check(t, s.Nomad.RPC, err)
	h.forward(t, s.Nomad.RPC, net.JoinHostPort(loopback, port))
}

// forward passes connections to an address of the host on to one of the test's machine.
func (h *RealHost) forward(t testing.TB, from, to string) {
	t.Helper()
	type result struct {
		net.Listener
		error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", h.pid))
		if err != nil {
			made <- result{nil, err}
			return
		}
		defer namespace.Close()
		if _, _, failed := syscall.RawSyscall(setns, namespace.Fd(), syscall.CLONE_NEWNET, 0); failed != 0 {
			made <- result{nil, failed}
			return
		}
		listener, err := net.Listen("tcp", from)
		made <- result{listener, err}
	}()
	listening := <-made
	check(t, from, listening.error)
	serveForward(t, listening.Listener, to)
}

// setns(2), which the package syscall does not know.
var setns = map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]

const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "docker.io/library/virt-launcher:latest"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/host"
`

const networkConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "subnet": "10.52.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`

func (h *RealHost) startRuntime(t testing.TB) {
	t.Helper()
	h.file(t, "containerd.toml", containerdConfig)
	h.file(t, "network.conflist", networkConfig)
	start(t, h.dir, "containerd", h.command("containerd", "--config", "/host/containerd.toml"))
	Eventually(t, time.Minute, "containerd answers", func() error { return h.command("ctr", "version").Run() })
	image := part(t, "host", "image.tar")
	cmd := h.command("ctr", "--namespace", "k8s.io", "images", "import", "-")
	cmd.Stdin = must[*os.File](t, image)(os.Open(image))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("import of %s: %v\n%s", image, err, out)
	}
}

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: 127.0.0.1
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
resolvConf: ""
clusterDNS: [10.53.0.1]
clusterDomain: cluster.local
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
`

func (h *RealHost) startKubelet(t testing.TB) {
	t.Helper()
	h.file(t, "kubelet.yaml", kubeletConfig)
	start(t, h.dir, "kubelet", h.command("kubelet", "--config", "/host/kubelet.yaml", "--kubeconfig", "/host/kubeconfig",
		"--hostname-override", h.Name, "--node-ip", realHostAddress, "--node-labels", "network.harvesterhci.io/mgmt=true"))
	Eventually(t, 2*time.Minute, "the host is ready", func() error {
		host, err := h.kube.Get(Hosts, "", h.Name)
		if err == nil && !HasCondition(host, "Ready") {
			err = fmt.Errorf("%v", host.At("status", "conditions"))
		}
		return err
	})
}

// startVirtHandler runs it as a process of the host, and not as a pod: a pod would have to reach the API server.
func (h *RealHost) startVirtHandler(t testing.TB, s *Stack) {
	t.Helper()
	token := must[string](t, "virt-handler's token")(s.Kube.TokenFor(systemNamespace, "kubevirt-handler"))
	WriteKubeconfig(t, filepath.Join(h.dir, "handler.kubeconfig"), s.Kube.URL, "/host/tls/ca", token)
	h.run(t, `mkdir -p /run/secrets/kubernetes.io/serviceaccount /run/kubevirt /run/kubevirt-private /run/kubevirt-libvirt-runtimes
printf %s `+systemNamespace+` >/run/secrets/kubernetes.io/serviceaccount/namespace
node-labeller.sh`)
	const certificate, key = "/host/tls/crt", "/host/tls/key"
	start(t, h.dir, "virt-handler", h.command("virt-handler", "--kubeconfig", "/host/handler.kubeconfig", "--hostname-override", h.Name,
		"--pod-ip-address", realHostAddress, "--port", "8443", "-v", "3",
		"--client-cert-file", certificate, "--client-key-file", key, "--tls-cert-file", certificate, "--tls-key-file", key,
		"--migration-client-cert-file", certificate, "--migration-client-key-file", key,
		"--vsock-client-cert-file", certificate, "--vsock-client-key-file", key))
}

// HandlerSays returns the lines of virt-handler's log that have a text.
func (h *RealHost) HandlerSays(t testing.TB, text string) string {
	t.Helper()
	log := must[[]byte](t, "virt-handler's log")(os.ReadFile(filepath.Join(h.dir, "virt-handler.log")))
	said := ""
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, text) {
			said += line
		}
	}
	return said
}

// makeDisk returns the path of a block device of the host for a claim: as large as that says, with the image's content
// if it is of one.
func (h *RealHost) makeDisk(claim Object, image string) (string, error) {
	name := "disk-" + claim.UID()
	script := "truncate --size " + binarySize(claim.Str("spec", "resources", "requests", "storage")) + " $2"
	if claim.Annotation("harvesterhci.io/imageId") != "" {
		script = "cp --sparse=always $1 $2 && " + script
	}
	script = `losetup --noheadings --output NAME --associated $2 | grep . || { ` + script + ` && losetup --find --show $2; }`
	cmd := exec.Command("sh", "-c", script, "disk", image, filepath.Join(h.dir, name))
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Guests returns the command lines of QEMU on the host, by the UUIDs of their machines.
func (h *RealHost) Guests(t testing.TB) map[string]string {
	t.Helper()
	out, err := h.command("ps", "-C", "qemu-system-x86_64", "--no-headers", "-o", "args").Output()
	var none *exec.ExitError
	if err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	guests := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if found := uuidOption.FindStringSubmatch(line); found != nil {
			guests[found[1]] = line
		}
	}
	return guests
}

var uuidOption = regexp.MustCompile(` -uuid ([0-9a-f-]+) `)
