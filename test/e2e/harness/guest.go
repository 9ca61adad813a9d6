// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A guest's network is QEMU's own: each guest is alone in one, with a name server, DHCP and a gateway behind which
// there is nothing, because QEMU is in a network namespace of its own. A connection to guestsServer is one to Nomad's
// server: QEMU runs a program for it, which returns to the namespace of the test.
const (
	guestNetwork = "10.0.2.0/24"
	guestsServer = "10.0.2.100"
	firstGuest   = 15
)

// guest is a virtual machine that QEMU runs in emulation: what virt-launcher and libvirt make of an instance.
type guest struct {
	name, dir string // its sockets and its disks are in dir
	instance  Object
	disks     map[string]disk // by the volume's name
	image     string          // the disk that Harvester's image holds
	secret    Object          // with the data for cloud-init
	address   string          // what DHCP gives it
	clock     time.Duration   // by how much its clock is wrong
	server    string          // port of Nomad's server

	reported atomic.Pointer[string] // the address that the guest's agent tells
}

// disk is a volume as its claim asks for it.
type disk struct {
	size      string
	fromImage bool
}

// command returns QEMU with the instance's hardware: processors, memory, firmware, disks in their order, network
// cards. Devices are behind ports of the root, as libvirt places them, so that the first card is enp1s0.
func (g *guest) command() (*exec.Cmd, error) {
	domain := g.instance.Obj("spec", "domain")
	cpu := domain.Obj("cpu")
	sockets, cores, threads := max(1, cpu.Int("sockets")), max(1, cpu.Int("cores")), max(1, cpu.Int("threads"))
	memory := domain.Str("memory", "guest")
	if memory == "" {
		return nil, fmt.Errorf("%s has no memory.guest", g.name)
	}
	firmware, err := g.firmware()
	if err != nil {
		return nil, err
	}
	arguments := append([]string{
		"-name", g.name, "-machine", "q35", "-accel", "tcg", "-cpu", "max",
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", sockets*cores*threads, sockets, cores, threads),
		"-m", binarySize(memory), "-nodefaults", "-display", "none", "-vga", "std",
		"-rtc", "base=" + time.Now().UTC().Add(g.clock).Format("2006-01-02T15:04:05"),
		"-serial", "stdio", "-qmp", "unix:" + g.path("qmp") + ",server=on,wait=off",
	}, firmware...)
	port := 0
	add := func(device string, options ...string) {
		port++
		arguments = append(arguments, "-device", fmt.Sprintf("pcie-root-port,id=port%d,chassis=%d,port=%d", port, port, port))
		arguments = append(arguments, options...)
		arguments = append(arguments, "-device", fmt.Sprintf("%s,bus=port%d", device, port))
	}
	for i, nic := range domain.List("devices", "interfaces") {
		network := fmt.Sprintf("user,id=net%d,net=10.0.%d.0/24", i, i+2)
		if i == 0 {
			network = fmt.Sprintf("user,id=net0,net=%s,dhcpstart=%s,guestfwd=tcp:%s:%s-cmd:nsenter --net=/proc/%d/ns/net busybox nc %s %s",
				guestNetwork, g.address, guestsServer, g.server, os.Getpid(), loopback, g.server)
		}
		add(fmt.Sprintf("virtio-net-pci,netdev=net%d,mac=%s", i, macOf(nic)), "-netdev", network)
	}
	// The bus of the guest agent's port is the device before it.
	add("virtio-serial-pci", "-chardev", "socket,id=agent,path="+g.path("agent")+",server=on,wait=off")
	arguments = append(arguments, "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0")
	for i, drive := range domain.List("devices", "disks") {
		file, format, err := g.drive(drive.Str("name"))
		if err != nil {
			return nil, err
		}
		device := fmt.Sprintf("virtio-blk-pci,drive=drive%d", i)
		if order := drive.Int("bootOrder"); order > 0 {
			device += fmt.Sprintf(",bootindex=%d", order)
		}
		if serial := drive.Str("serial"); serial != "" {
			device += ",serial=" + serial
		}
		add(device, "-drive", fmt.Sprintf("if=none,id=drive%d,file=%s,format=%s,cache=unsafe", i, file, format))
	}
	// QEMU talks by loopback with the program that it runs for a connection.
	cmd := exec.Command("/bin/sh", append([]string{"-c", `ip link set lo up && exec qemu-system-x86_64 "$@"`, "boot"}, arguments...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setsid: true}
	return cmd, nil
}

func (g *guest) path(name string) string { return filepath.Join(g.dir, name) }

// firmware returns the options for BIOS or UEFI, and for what the firmware tells of the machine, as KubeVirt sets it
// (kubevirt/kubevirt:pkg/virt-config/virt-config.go).
func (g *guest) firmware() ([]string, error) {
	firmware := g.instance.Obj("spec", "domain", "firmware")
	system := "type=1,manufacturer=KubeVirt,product=None,family=KubeVirt,uuid=" + firmware.Str("uuid")
	if serial := firmware.Str("serial"); serial != "" {
		system += ",serial=" + serial
	}
	options := []string{"-uuid", firmware.Str("uuid"), "-smbios", system}
	efi := firmware.At("bootloader", "efi")
	if efi == nil {
		return options, nil
	}
	if !firmware.Bool("bootloader", "efi", "secureBoot") {
		variables := g.path("variables")
		if _, err := os.Stat(variables); err != nil { // a guest that boots again keeps them
			empty, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.fd")
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(variables, empty, 0o600); err != nil {
				return nil, err
			}
		}
		return append(options, "-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
			"-drive", "if=pflash,format=raw,file="+variables), nil
	}
	return nil, fmt.Errorf("%s: the disk of the tests has no signed loader for secure boot", g.name)
}

// drive returns the file of a disk, and makes it for the machine's first boot: an overlay of the image, an empty disk,
// or the volume with the user data.
func (g *guest) drive(name string) (file, format string, err error) {
	for _, volume := range g.instance.List("spec", "volumes") {
		if source := volume.Obj("cloudInitNoCloud"); volume.Str("name") == name && source != nil {
			file = g.path("cloud-init.iso")
			return file, "raw", g.writeCloudInit(source, file)
		}
	}
	volume, known := g.disks[name]
	if !known {
		return "", "", fmt.Errorf("%s: disk %s has no claim", g.name, name)
	}
	file = g.path(name + ".qcow2")
	if _, err := os.Stat(file); err == nil {
		return file, "qcow2", nil
	}
	arguments := []string{"create", "-q", "-f", "qcow2"}
	if volume.fromImage {
		arguments = append(arguments, "-b", g.image, "-F", "raw")
	}
	out, err := exec.Command("qemu-img", append(arguments, file, binarySize(volume.size))...).CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("%s: disk %s of %s: %w: %s", g.name, name, volume.size, err, out)
	}
	return file, "qcow2", nil
}

// writeCloudInit makes the volume as virt-launcher does: label, names of files, meta-data and all
// (kubevirt/kubevirt:pkg/cloud-init/cloud-init.go, GenerateLocalData and defaultIsoFunc).
func (g *guest) writeCloudInit(source Object, file string) error {
	metaData, err := json.Marshal(struct {
		ID   string `json:"instance-id"`
		Name string `json:"local-hostname"`
	}{g.instance.Str("spec", "domain", "firmware", "uuid"), g.name})
	if err != nil {
		return err
	}
	files := map[string][]byte{"meta-data": metaData}
	for name, key := range map[string][2]string{
		"user-data": {"secretRef", "userdata"}, "network-config": {"networkDataSecretRef", "networkdata"},
	} {
		if source.Str(key[0], "name") != g.secret.Name() {
			continue
		}
		if files[name], err = base64.StdEncoding.DecodeString(g.secret.Str("data", key[1])); err != nil {
			return fmt.Errorf("%s of Secret %s: %w", key[1], g.secret.Name(), err)
		}
	}
	data := g.path("cloud-init")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o600); err != nil {
			return err
		}
	}
	out, err := exec.Command("xorrisofs", "-quiet", "-output", file, "-volid", "cidata", "-joliet", "-rock",
		"-partition_cyl_align", "on", data).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the cloud-init volume of %s: %w: %s", g.name, err, out)
	}
	return nil
}

// binarySize is a quantity of Kubernetes as QEMU reads it: its units are powers of 1024.
func binarySize(quantity string) string {
	if size, found := strings.CutSuffix(quantity, "i"); found {
		return size
	}
	return quantity + "B"
}

// macOf returns the address of a network card.
func macOf(nic Object) string {
	if mac := nic.Str("macAddress"); mac != "" {
		return mac
	}
	return "52:54:00:0a:0b:0c" // as KubeVirt, which makes one up
}

// bootGuest is Boot for a guest of QEMU.
func (m *Machines) bootGuest(id string, g *guest) (*Machine, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.addresses[id] == "" {
		m.addresses[id] = fmt.Sprintf("10.0.2.%d", firstGuest+len(m.addresses))
	}
	g.address, g.dir, g.image, g.clock = m.addresses[id], filepath.Join(m.dir, m.addresses[id]), m.image, m.GuestClock
	_, g.server, _ = strings.Cut(m.server, ":")
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return nil, err
	}
	cmd, err := g.command()
	if err != nil {
		return nil, err
	}
	process, err := launch(g.dir, g.name, cmd)
	if err != nil {
		return nil, err
	}
	// The guest's clock goes on while QEMU waits for a processor, until systemd's time-outs fail the boot. A kernel that
	// shares processors among sessions (sched(7), autogroup) gives this one more.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", process.Pid()), []byte("-10"), 0)
	machine := &Machine{Process: process, guest: g}
	machine.ending.Store(int32(PowerOff)) // QEMU ends when its guest is off, and not when that boots again
	m.booted = append(m.booted, machine)
	go machine.askAgent()
	return machine, nil
}

// BootGuest boots the guest of a VM with one disk, from the image, without a cluster that makes an instance of it.
func (m *Machines) BootGuest(t testing.TB, vm, secret Object) *Machine {
	t.Helper()
	text := must[[]byte](t, vm.Name())(json.Marshal(Object{"metadata": vm["metadata"], "spec": vm.At("spec", "template", "spec")}))
	instance := must[Object](t, vm.Name())(decodeObject(text))
	domain := instance.Obj("spec", "domain")
	domain["memory"] = Object{"guest": domain.Str("resources", "limits", "memory")} // as KubeVirt does
	return must[*Machine](t, vm.Name())(m.bootGuest(vm.Name(), &guest{
		name: vm.Name(), instance: instance, secret: secret, disks: map[string]disk{"disk-0": {"20Gi", true}},
	}))
}

// powerOff presses ACPI's power button, and pulls the plug after the grace period. libvirt, which virt-launcher asks,
// asks the guest's agent first if there is one: this is the way that is left for an image without.
func (m *Machine) powerOff() {
	if _, err := m.guest.ask("qmp", Object{"execute": "qmp_capabilities"}, Object{"execute": "system_powerdown"}); err == nil {
		grace := time.Duration(m.guest.instance.Int("spec", "terminationGracePeriodSeconds")) * time.Second
		if grace == 0 {
			grace = 30 * time.Second // kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, DefaultGracePeriodSeconds
		}
		select {
		case <-m.Done():
		case <-time.After(grace * slow):
		}
	}
	m.Kill()
}

// askAgent asks the guest's agent for the guest's address until it tells one.
func (m *Machine) askAgent() {
	for m.Running() {
		answer, err := m.guest.ask("agent", Object{"execute": "guest-network-get-interfaces"})
		for _, nic := range answer.List("return") {
			for _, address := range nic.List("ip-addresses") {
				if ip := address.Str("ip-address"); err == nil && nic.Str("name") != "lo" && address.Str("ip-address-type") == "ipv4" {
					m.guest.reported.Store(&ip)
					return
				}
			}
		}
		time.Sleep(time.Second)
	}
}

// RebootGuest has the guest's agent reboot the machine, which it does instead of an answer.
func (m *Machine) RebootGuest() {
	_, _ = m.guest.ask("agent", Object{"execute": "guest-shutdown", "arguments": Object{"mode": "reboot"}})
}

// ReadFile returns a file of the guest, which its agent reads.
func (m *Machine) ReadFile(path string) (string, error) {
	file, err := m.guest.ask("agent", Object{"execute": "guest-file-open", "arguments": Object{"path": path}})
	if err != nil {
		return "", err
	}
	handle := Object{"handle": file.At("return")}
	content, err := m.guest.ask("agent", Object{"execute": "guest-file-read", "arguments": handle})
	if err != nil {
		return "", err
	}
	text, err := base64.StdEncoding.DecodeString(content.Str("return", "buf-b64"))
	return string(text), err
}

// ask sends commands to a socket of QEMU and returns the last answer. The guest's agent speaks the same language
// (qemu/qemu:docs/interop/qmp-spec.rst, qemu-ga-ref.rst).
func (g *guest) ask(socket string, commands ...Object) (answer Object, err error) {
	conn, err := net.Dial("unix", g.path(socket))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if socket == "agent" { // what it says to somebody who has given up comes to who asks next
		number := time.Now().UnixMilli()
		if err := json.NewEncoder(conn).Encode(Object{"execute": "guest-sync", "arguments": Object{"id": number}}); err != nil {
			return nil, err
		}
		for answer.Int("return") != number {
			if !lines.Scan() {
				return nil, fmt.Errorf("%s: no answer of the guest's agent: %v", g.name, lines.Err())
			}
			answer, _ = decodeObject(lines.Bytes())
		}
	}
	for _, command := range commands {
		if err := json.NewEncoder(conn).Encode(command); err != nil {
			return nil, err
		}
		for answer = nil; answer.At("return") == nil; {
			if !lines.Scan() {
				return nil, fmt.Errorf("%s: no answer to %v: %v", g.name, command, lines.Err())
			}
			if answer, err = decodeObject(lines.Bytes()); err != nil {
				return nil, err
			}
			if answer.At("error") != nil {
				return nil, fmt.Errorf("%s: %v: %v", g.name, command, answer.At("error"))
			}
		}
	}
	return answer, nil
}

// CPU returns how much of the processor a machine that has ended took.
func (m *Machine) CPU() time.Duration {
	return m.cmd.ProcessState.UserTime() + m.cmd.ProcessState.SystemTime()
}

// guestDisk returns the path of the disk from which guests boot; the variable is empty, or 13 for Debian 13.
func guestDisk(t testing.TB) string {
	t.Helper()
	return part(t, "guest"+os.Getenv("NOMAD_HARVESTER_E2E_GUEST"), "disk.raw")
}
