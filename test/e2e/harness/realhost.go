// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RealHost is one more host of a cluster that nobody plays: a machine in namespaces (testdata/real-host.sh) with
// containerd, runc, kubelet, Multus and KubeVirt's virt-handler, which make a VM's pod with KubeVirt's virt-launcher,
// libvirt and QEMU. QEMU emulates the processor. Of Longhorn there is nothing: a volume is a loop device of the host.
// Its guests are in the VLAN of their network with DHCP and Nomad's server, behind which there is nothing.
type RealHost struct {
	Name string

	dir  string
	init *Process
	pid  int // of its process 1
	kube *Kube
}

// What is at the host's end of the guests' network: the host, and Nomad's server (guestsServer).
const hostsGateway = "10.0.2.2"

// StartRealHost boots the host and makes it the only one on which VMs are placed, until the end of the test.
func (s *Stack) StartRealHost(t testing.TB) *RealHost {
	t.Helper()
	h := &RealHost{Name: "real-host-0", dir: filepath.Join(s.Dir, "h"), kube: s.Kube}
	script := testdata("real-host.sh")
	check(t, h.dir, os.Mkdir(h.dir, 0o755))
	t.Cleanup(func() {
		if out, err := exec.Command(script, "clean", h.dir).CombinedOutput(); err != nil {
			t.Errorf("%s clean: %v: %s", script, err, out)
		}
	})
	h.init = start(t, s.Dir, h.Name, exec.Command(script, "boot", h.dir, part(t, "host", "root"), h.Name))
	h.file(t, "pid", fmt.Sprint(h.init.Pid()))
	Eventually(t, time.Minute, h.Name+" is up", func() error {
		children, err := h.init.Children("sleep")
		if err == nil && len(children) != 1 {
			return errors.New(tail(h.init.Log, 5))
		}
		if err == nil {
			h.pid = children[0]
		}
		return err
	})

	h.connect(t, s)
	h.startRuntime(t)
	WriteKubeconfig(t, filepath.Join(h.dir, "kubeconfig"), s.Kube.URL, "/host/ca.pem", s.Kube.Token)
	h.copyFiles(t, map[string]string{"ca.pem": s.Certificates.CAFile, "tls.crt": s.Certificates.CertFile, "tls.key": s.Certificates.KeyFile})
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
	must[Object](t, "KubeVirt's configuration")(s.Kube.Patch(Resource{"kubevirt.io", "v1", "kubevirts"}, systemNamespace, "kubevirt",
		Object{"spec": Object{"configuration": Object{"developerConfiguration": Object{"useEmulation": true}}}}))
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

// file writes a file that the host sees as /host/NAME.
func (h *RealHost) file(t testing.TB, name, content string) {
	t.Helper()
	check(t, name, os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o644))
}

func (h *RealHost) copyFiles(t testing.TB, files map[string]string) {
	t.Helper()
	for name, path := range files {
		h.file(t, name, string(must[[]byte](t, path)(os.ReadFile(path))))
	}
}

// command is one that runs on the host.
func (h *RealHost) command(arguments ...string) *exec.Cmd {
	return exec.Command(testdata("real-host.sh"), append([]string{"run", h.dir}, arguments...)...)
}

// Run runs a command on the host and returns its output.
func (h *RealHost) Run(t testing.TB, arguments ...string) string {
	t.Helper()
	out, err := h.command(arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

// connect gives the host its network and a way to the API server and to Nomad's.
func (h *RealHost) connect(t testing.TB, s *Stack) {
	t.Helper()
	h.Run(t, "sh", "-ec", `ip link add mgmt-br type bridge vlan_filtering 1
for address in `+hostsGateway+` `+guestsServer+`; do ip address add $address/24 dev mgmt-br; done
bridge vlan add dev mgmt-br vid 10 pvid untagged self
ip link set mgmt-br up
ip route add default via `+hostsGateway)
	api := strings.TrimPrefix(s.Kube.URL, "https://")
	h.forward(t, api, api)
	_, port, err := net.SplitHostPort(s.Nomad.RPC)
	check(t, s.Nomad.RPC, err)
	h.forward(t, s.Nomad.RPC, net.JoinHostPort(loopback, port))
	h.file(t, "udhcpd.conf", fmt.Sprintf("start 10.0.2.%d\nend 10.0.2.60\ninterface mgmt-br\nlease_file %[2]s/leases\npidfile %[2]s/udhcpd.pid\noption router %[3]s\noption subnet 255.255.255.0\n",
		firstGuest, h.dir, hostsGateway))
	h.file(t, "leases", "")
	start(t, h.dir, "udhcpd", exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", h.pid),
		"busybox", "udhcpd", "-f", filepath.Join(h.dir, "udhcpd.conf")))
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
`

// Multus makes a pod's networks: its own by a bridge of the host, others as their NetworkAttachmentDefinitions say.
const multusConfig = `{"cniVersion": "0.3.1", "name": "multus", "type": "multus", "kubeconfig": "/host/kubeconfig", "delegates": [
  {"cniVersion": "0.3.1", "name": "pods", "type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "subnet": "10.52.0.0/24"}}
]}
`

func (h *RealHost) startRuntime(t testing.TB) {
	t.Helper()
	h.file(t, "containerd.toml", containerdConfig)
	h.file(t, "multus.conf", multusConfig)
	h.Run(t, "sh", "-ec", "mkdir -p /etc/cni/net.d && cp /host/multus.conf /etc/cni/net.d/")
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
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
`

func (h *RealHost) startKubelet(t testing.TB) {
	t.Helper()
	h.file(t, "kubelet.yaml", kubeletConfig)
	start(t, h.dir, "kubelet", h.command("kubelet", "--config", "/host/kubelet.yaml", "--kubeconfig", "/host/kubeconfig",
		"--hostname-override", h.Name, "--node-ip", hostsGateway, "--node-labels", "network.harvesterhci.io/mgmt=true"))
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
	WriteKubeconfig(t, filepath.Join(h.dir, "handler.kubeconfig"), s.Kube.URL, "/host/ca.pem", token)
	h.Run(t, "sh", "-ec", `mkdir -p /run/secrets/kubernetes.io/serviceaccount /run/kubevirt /run/kubevirt-private /run/kubevirt-libvirt-runtimes
printf %s "$0" >/run/secrets/kubernetes.io/serviceaccount/namespace
node-labeller.sh`, systemNamespace)
	const certificate, key = "/host/tls.crt", "/host/tls.key"
	start(t, h.dir, "virt-handler", h.command("virt-handler", "--kubeconfig", "/host/handler.kubeconfig", "--hostname-override", h.Name,
		"--pod-ip-address", hostsGateway, "--port", "8443", "-v", "3",
		"--client-cert-file", certificate, "--client-key-file", key, "--tls-cert-file", certificate, "--tls-key-file", key,
		"--migration-client-cert-file", certificate, "--migration-client-key-file", key,
		"--vsock-client-cert-file", certificate, "--vsock-client-key-file", key))
}

// makeDisk returns the path of a new block device of the host that is as large as a claim says, with what the image
// holds if it is of one.
func (h *RealHost) makeDisk(claim Object, image string) (string, error) {
	file := filepath.Join("/host", "disk-"+claim.UID())
	own := filepath.Join(h.dir, "disk-"+claim.UID())
	if _, err := os.Stat(own); err == nil {
		out, err := h.command("losetup", "--associated", file, "--noheadings", "--output", "NAME").Output()
		return strings.TrimSpace(string(out)), err
	}
	if claim.Annotation("harvesterhci.io/imageId") != "" {
		if out, err := exec.Command("cp", "--sparse=always", image, own).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	if out, err := exec.Command("truncate", "--size", binarySize(claim.Str("spec", "resources", "requests", "storage")), own).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	out, err := h.command("losetup", "--find", "--show", file).Output()
	return strings.TrimSpace(string(out)), err
}

// QEMUs returns the command lines of the host's guests.
func (h *RealHost) QEMUs(t testing.TB) []string {
	t.Helper()
	out, _ := h.command("pgrep", "--list-full", "qemu-system").Output()
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}
