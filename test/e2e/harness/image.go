// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// musl's dynamic linker and C library, and Debian's copy of it.
const (
	muslLoader  = "/lib/ld-musl-x86_64.so.1"
	muslLibrary = "/usr/lib/x86_64-linux-musl/libc.so"
)

// Image is a root file system, as a container engine makes one of an image: only what is put there, a
// null device, names of the host's resolver.
type Image struct {
	Root     string
	UID, GID uint32
	Env      []string
}

// NewImage returns a root with musl's C library and no other one. Its user may write to /tmp only. Its
// names come from a server on the loopback.
func NewImage(t testing.TB, uid, gid uint32) *Image {
	t.Helper()
	i := &Image{Root: filepath.Join(temporaryDir(t), "root"), UID: uid, GID: gid,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}}
	for _, path := range []string{"bin", "dev", "etc", "lib", "tmp", "usr/bin"} {
		check(t, path, os.MkdirAll(filepath.Join(i.Root, path), 0o755))
	}
	check(t, "/tmp", os.Chmod(filepath.Join(i.Root, "tmp"), 0o777|os.ModeSticky))
	null := filepath.Join(i.Root, "dev", "null")
	check(t, null, syscall.Mknod(null, syscall.S_IFCHR|0o666, 1<<8|3))
	check(t, null, os.Chmod(null, 0o666))
	i.Copy(t, muslLibrary, muslLoader)
	i.Write(t, "/etc/hosts", "127.0.0.1 localhost\n")
	i.Write(t, "/etc/resolv.conf", "nameserver "+startNameserver(t)+"\n")
	return i
}

// Write makes a file that everybody may read.
func (i *Image) Write(t testing.TB, path, content string) {
	t.Helper()
	full := filepath.Join(i.Root, path)
	check(t, path, os.MkdirAll(filepath.Dir(full), 0o755))
	check(t, path, os.WriteFile(full, []byte(content), 0o644))
}

// Copy copies a program of this machine. Another process writes it: a file that this one has open for
// writing, or a child that it is about to make, cannot be executed.
func (i *Image) Copy(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("install", "-D", "-m", "755", from, filepath.Join(i.Root, to)).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", to, err, out)
	}
}

// Compile makes a program that is linked with musl's C library, and proves that it is.
func (i *Image) Compile(t testing.TB, source, to string) {
	t.Helper()
	cmd := exec.Command("musl-gcc", "-x", "c", "-o", filepath.Join(i.Root, to), "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("musl-gcc: %v\n%s", err, out)
	}
	program := must[[]byte](t, to)(os.ReadFile(filepath.Join(i.Root, to)))
	if !bytes.Contains(program, []byte(muslLoader)) {
		t.Fatalf("%s does not name musl's loader", to)
	}
}

func (i *Image) command(program string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(program, arguments...)
	cmd.Dir, cmd.Env = "/", i.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.Root, Credential: &syscall.Credential{Uid: i.UID, Gid: i.GID}}
	return cmd
}

// Run runs a program of the image as its user, and returns what it printed.
func (i *Image) Run(program string, arguments ...string) (string, error) {
	out, err := i.command(program, arguments...).CombinedOutput()
	return string(out), err
}

// The lines of the agent's Dockerfile that the layout below depends on.
var agentLayout = []string{
	"FROM alpine:",
	"\nCOPY dist/$TARGETOS/$TARGETARCH/nomad-autoscaler /bin/\n",
	"\nCOPY ./scripts/docker-entrypoint.sh /\n",
	"\nRUN addgroup $PRODUCT_NAME && \\\n    adduser -S -G $PRODUCT_NAME $PRODUCT_NAME\n",
	"\nUSER $PRODUCT_NAME\nENTRYPOINT [\"/docker-entrypoint.sh\"]\n",
}

// NewAgentImage returns the layout of the agent's own image (hashicorp/nomad-autoscaler:Dockerfile, stage
// release): Alpine's user land, with Debian's static busybox for Alpine's, the agent in /bin, its entry
// point, and its user, Alpine's first one of the system.
func NewAgentImage(t testing.TB) *Image {
	t.Helper()
	dockerfile := part(t, "agent", "Dockerfile")
	_, release, found := strings.Cut(string(must[[]byte](t, dockerfile)(os.ReadFile(dockerfile))), "\n#   Release images.\n")
	for _, line := range agentLayout {
		if !found || !strings.Contains(release, line) {
			t.Fatalf("%s: the release image has another layout: no %q", dockerfile, line)
		}
	}
	i := NewImage(t, 100, 1000)
	i.Copy(t, must[string](t, "busybox-static")(exec.LookPath("busybox")), "/bin/busybox")
	for _, link := range []string{"/bin/sh", "/usr/bin/env"} {
		check(t, link, os.Symlink("/bin/busybox", filepath.Join(i.Root, link)))
	}
	i.Write(t, "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnomad-autoscaler:x:100:1000::/home/nomad-autoscaler:/sbin/nologin\n")
	i.Write(t, "/etc/group", "root:x:0:root\nnomad-autoscaler:x:1000:nomad-autoscaler\n")
	i.Copy(t, part(t, "agent", "nomad-autoscaler"), "/bin/nomad-autoscaler")
	i.Copy(t, part(t, "agent", "docker-entrypoint.sh"), "/docker-entrypoint.sh")
	return i
}

const imageConfig = `
plugin_dir = "/plugins"
nomad {
  address = %q
}
policy {
  dir = "/etc/nomad-autoscaler/policies"
}
apm "prometheus" {
  driver = "prometheus"
  config = {
    address = %q
  }
}
strategy "pass-through" {
  driver = "pass-through"
}
target "harvester" {
  driver = "harvester"
  config = {
    harvester_url = %q
    auth_token    = "any"
  }
}
`

const imagePolicy = `
scaling "web" {
  enabled = true
  type    = "cluster"
  min     = 0
  max     = 3
  policy {
    cooldown            = "1s"
    evaluation_interval = "1s"
    check "wanted" {
      source = "prometheus"
      query  = "wanted"
      strategy "pass-through" {}
    }
    target "harvester" {
      node_group_name = "web"
      namespace       = "nomad"
      node_class      = "web"
      image           = "default/ubuntu-24.04"
      networks        = "default/vlan10"
      cpu_request     = "1"
      memory_request  = "1Gi"
      user_data_file  = "/etc/nomad-autoscaler/cloud-init.yaml"
    }
  }
}
`

// StartAgent starts the image as its entry point does, with the plugin in /plugins and a pool whose count
// the metrics say.
func (i *Image) StartAgent(t testing.TB, harvester, nomad string) (*Agent, *Metrics) {
	t.Helper()
	const etc = "/etc/nomad-autoscaler/"
	metrics := startMetrics(t)
	i.Copy(t, Plugin(t), "/plugins/harvester")
	i.Copy(t, filepath.Join(Root, "examples", "cloud-init.yaml"), etc+"cloud-init.yaml")
	i.Write(t, etc+"policies/web.hcl", imagePolicy)
	i.Write(t, etc+"agent.hcl", fmt.Sprintf(imageConfig, nomad, metrics.URL, harvester))
	i.Write(t, etc+"overlay.hcl", fmt.Sprintf(agentOverlay, freePort(t)))
	cmd := i.command("/docker-entrypoint.sh", "nomad-autoscaler", "agent", "-config", etc+"agent.hcl", "-config", etc+"overlay.hcl")
	return &Agent{Process: start(t, filepath.Dir(i.Root), "nomad-autoscaler", cmd), dir: i.Root}, metrics
}
