// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const nomadPort = 4646

// machineConfig is what a virtual machine's own image and network would give its
// Nomad client. Fingerprinting does not query cloud metadata services, whose
// addresses are outside of this host.
const machineConfig = `
data_dir             = %[1]q
bind_addr            = %[2]q
disable_update_check = true
leave_on_interrupt   = false
leave_on_terminate   = false
advertise {
  http = %[2]q
  rpc  = %[2]q
  serf = %[2]q
}
ports {
  http = %[3]d
}
client {
  enabled           = true
  servers           = [%[4]q]
  network_interface = "lo"
  options = {
    "driver.allowlist"     = "mock_driver"
    "fingerprint.denylist" = "env_aws,env_azure,env_digitalocean,env_gce,consul,vault,cni,bridge,landlock"
  }
}
consul {
  auto_advertise   = false
  server_auto_join = false
  client_auto_join = false
}
`

// Machines boots virtual machines: each is a real Nomad client with its own host
// name, process table and mounts.
type Machines struct {
	program string // Nomad
	server  string // address that its clients join
	dir     string
	image   string // if it is set, machines are guests of QEMU with this disk

	GuestClock time.Duration // by how much the clocks of new guests are wrong

	lock      sync.Mutex
	addresses map[string]string
	booted    []*Machine
}

// Machine is a booted machine.
type Machine struct {
	*Process
	Address string

	guest  *guest // nil: it is a Nomad client in namespaces
	ending atomic.Int32
	Config string // directory used as /etc/nomad.d
	Data   string // directory used as /opt/nomad/data
}

func newMachines(t testing.TB, dir string, nomad *Nomad) *Machines {
	t.Helper()
	m := &Machines{program: NomadProgram(t), server: nomad.RPC, dir: dir,
		addresses: map[string]string{}}
	t.Cleanup(func() {
		m.lock.Lock()
		defer m.lock.Unlock()
		for _, machine := range m.booted {
			machine.Kill()
			if t.Failed() {
				t.Logf("end of %s's log:\n%s", machine.Name, tail(machine.Log, 20))
			}
		}
	})
	return m
}

// Boot starts a machine whose image holds HashiCorp's package of Nomad, with the
// files that its cloud-init wrote: those in /etc/nomad.d are added to the packaged
// configuration or replace it, those below the package's data_dir are in the
// machine's. As in the package's unit for systemd, nomad.env has the environment
// (hashicorp/nomad:.release/linux/package/usr/lib/systemd/system/nomad.service); what a
// drop-in of the unit runs before Nomad is run. A machine that boots again keeps its disk
// and address.
func (m *Machines) Boot(id, name string, files map[string]string) (*Machine, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	address := m.addresses[id]
	if address == "" {
		var err error
		if address, err = nextHost(nomadPort); err != nil {
			return nil, err
		}
		m.addresses[id] = address
	}
	dir := filepath.Join(m.dir, address) // short: Nomad's sockets are below it
	etc := filepath.Join(dir, "nomad.d")
	if err := os.MkdirAll(etc, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := writeConfig(etc, data, files); err != nil {
		return nil, fmt.Errorf("the cloud-init of %s: %w", name, err)
	}
	before, err := startPre(dir, data, files)
	if err != nil {
		return nil, fmt.Errorf("the cloud-init of %s: %w", name, err)
	}
	own := filepath.Join(dir, "machine.hcl")
	config := fmt.Appendf(nil, machineConfig, data, address, nomadPort, m.server)
	if err := os.WriteFile(own, config, 0o600); err != nil {
		return nil, err
	}
	arguments := []string{"agent", "-config", etc, "-config", own}

	// The shell in the new namespaces execs the client, which is then process 1 of
	// its machine: no process of the machine outlives it. With /sys/fs/cgroup hidden
	// Nomad creates no cgroups, which would be the host's and remain.
	const boot = `hostname "$1" && mount -t proc proc /proc || exit
umount -R -l /sys/fs/cgroup 2>/dev/null
[ -z "$2" ] || /bin/sh "$2"
shift 2 && exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", boot, "boot", name, before, m.program}, arguments...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS,
	}
	cmd.Env = machineEnvironment(files["/etc/nomad.d/nomad.env"])
	process, err := launch(dir, name, cmd)
	if err != nil {
		return nil, err
	}
	machine := &Machine{Process: process, Address: address, Config: etc, Data: data}
	m.booted = append(m.booted, machine)
	return machine, nil
}

// machineEnvironment adds a file's lines to this process's environment. A client of
// 1.11 does not start with AWS_CA_BUNDLE in it.
func machineEnvironment(file string) []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_CA_BUNDLE=") })
	return append(own, strings.Fields(file)...)
}

// writeConfig writes the packaged configuration, then cloud-init's files in
// /etc/nomad.d and below the package's data_dir. Files that name others of
// /etc/nomad.d name those of the machine.
func writeConfig(etc, data string, files map[string]string) error {
	packaged, err := os.ReadFile(testdata("packaged-nomad.hcl"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(etc, "nomad.hcl"), packaged, 0o600); err != nil {
		return err
	}
	written := 0
	for path, content := range files {
		target := filepath.Join(etc, filepath.Base(path))
		if below, found := strings.CutPrefix(path, packagedData+"/"); found {
			target = filepath.Join(data, below)
		} else if filepath.Dir(path) != "/etc/nomad.d" {
			continue
		}
		written++
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		content = strings.ReplaceAll(content, `"/etc/nomad.d/`, `"`+etc+"/")
		if err := os.WriteFile(target, []byte(content), 0o600); err != nil {
			return err
		}
	}
	if written == 0 {
		return fmt.Errorf("no file of %d is one of Nomad's", len(files))
	}
	return nil
}

// packagedData is the package's data_dir.
const packagedData = "/opt/nomad/data"

// startPre returns the path of the script that a drop-in of the unit runs before Nomad, for
// the machine's data_dir; empty: there is none.
func startPre(dir, data string, files map[string]string) (string, error) {
	for path, unit := range files {
		if filepath.Dir(path) != "/etc/systemd/system/nomad.service.d" {
			continue
		}
		_, line, runs := strings.Cut(unit, "\nExecStartPre=-")
		if !runs {
			continue
		}
		script, found := files[strings.TrimSpace(line)]
		if !found {
			return "", fmt.Errorf("%s runs no file of cloud-init: %q", path, unit)
		}
		own := filepath.Join(dir, "start-pre")
		return own, os.WriteFile(own, []byte(strings.ReplaceAll(script, packagedData, data)), 0o600)
	}
	return "", nil
}

// Running returns the machines that have not ended.
func (m *Machines) Running() []*Machine {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.DeleteFunc(slices.Clone(m.booted), func(machine *Machine) bool { return !machine.Running() })
}

// Validate runs "nomad config validate" on the machine's /etc/nomad.d, without
// what the harness adds for its own network.
func (m *Machines) Validate(machine *Machine) error {
	out, err := exec.Command(m.program, "config", "validate", machine.Config).CombinedOutput()
	if err != nil {
		return fmt.Errorf("nomad config validate: %w\n%s", err, out)
	}
	return nil
}

// Self returns /v1/agent/self of the machine's Nomad agent.
func (m *Machine) Self() (Object, error) {
	client := &Nomad{URL: fmt.Sprintf("http://%s:%d", m.Address, nomadPort)}
	return client.Get("/v1/agent/self")
}

// Ending is how a machine ends that nobody has asked to.
type Ending int32

// The ends of a machine.
const (
	Reboot   Ending = iota // it boots again at once
	PowerOff               // its guest switched it off
	Crash                  // its process died
)

func (e Ending) String() string { return [...]string{"reboot", "power off", "crash"}[e] }

// Interrupt stops Nomad as the package's unit does, when the machine reboots.
func (m *Machine) Interrupt() error { return m.cmd.Process.Signal(os.Interrupt) }

// PowerOff lets the guest shut itself down.
func (m *Machine) PowerOff() error {
	m.ending.Store(int32(PowerOff))
	return m.cmd.Process.Signal(syscall.SIGTERM)
}

// Ending returns how a machine that does not run any more has ended.
func (m *Machine) Ending() Ending {
	if status, ok := m.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Crash
	}
	return Ending(m.ending.Load())
}

// ShutDown ends the machine gracefully, like the power button.
func (m *Machine) ShutDown() {
	if m.guest != nil {
		m.powerOff()
		return
	}
	m.Stop(10 * time.Second)
}

// reported returns the address that the machine's agent tells; empty: it does not answer yet.
func (m *Machine) reported() string {
	if m.guest == nil {
		return m.Address
	}
	if address := m.guest.reported.Load(); address != nil {
		return *address
	}
	return ""
}
