package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const nomadPort = 4646

// machineConfig is what a virtual machine's own image and network would give its
// Nomad client. Fingerprinting never looks for a cloud's metadata service: that
// would be an address outside of this machine.
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

// Machines boots virtual machines: each is a real Nomad client that sees its own
// host name, process table and mounts.
type Machines struct {
	program string // Nomad
	server  string // what its clients join
	dir     string

	lock      sync.Mutex
	nextHost  func() (string, error)
	addresses map[string]string
	booted    []*Machine
}

// Machine is one that was booted.
type Machine struct {
	*Process
	Address string
}

func newMachines(t testing.TB, dir string, nomad *Nomad) *Machines {
	t.Helper()
	m := &Machines{program: part(t, "nomad", "nomad"), server: nomad.RPC, dir: dir,
		nextHost: freeHosts(nomadPort), addresses: map[string]string{}}
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

// Boot starts a machine with the files that its cloud-init wrote: those below
// /etc/nomad.d are its client's configuration. A machine that boots again has
// its disk and its address of before.
func (m *Machines) Boot(id, name string, files map[string]string) (*Machine, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	address := m.addresses[id]
	if address == "" {
		var err error
		if address, err = m.nextHost(); err != nil {
			return nil, err
		}
		m.addresses[id] = address
	}
	dir := filepath.Join(m.dir, address) // short: sockets of Nomad's lie below
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	arguments := []string{"agent"}
	for path, content := range files {
		if filepath.Dir(path) != "/etc/nomad.d" {
			continue
		}
		own := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(own, []byte(content), 0o600); err != nil {
			return nil, err
		}
		arguments = append(arguments, "-config", own)
	}
	if len(arguments) == 1 {
		return nil, fmt.Errorf("the cloud-init of %s configures no Nomad client", name)
	}
	own := filepath.Join(dir, "machine.hcl")
	config := fmt.Appendf(nil, machineConfig, filepath.Join(dir, "data"), address, nomadPort, m.server)
	if err := os.WriteFile(own, config, 0o600); err != nil {
		return nil, err
	}
	arguments = append(arguments, "-config", own)

	// The new namespaces are the shell's, which becomes the client: process 1 of
	// its machine, so that nothing of the machine outlives it. Without the cgroups
	// in sight Nomad makes none, which would be the host's and stay.
	const boot = `hostname "$1" && mount -t proc proc /proc || exit
umount -R -l /sys/fs/cgroup 2>/dev/null
shift && exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", boot, "boot", name, m.program}, arguments...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS,
	}
	process, err := launch(dir, name, cmd)
	if err != nil {
		return nil, err
	}
	machine := &Machine{process, address}
	m.booted = append(m.booted, machine)
	return machine, nil
}

// ShutDown ends the machine as the power button does: the client is asked first.
func (m *Machine) ShutDown() { m.Stop(10 * time.Second) }
