// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Where image.sh looks for packages.
const packages = "/tmp/packages"

func TestTheImageGetsItsPackagesFromWhereTheMachineHasThem(t *testing.T) {
	rest := []string{
		"systemctl enable qemu-guest-agent", "systemctl disable nomad", "systemctl stop nomad",
		"rm -rf /opt/nomad/data PACKAGES/ssh/ssh_host_* PACKAGES", "truncate -s 0 /etc/machine-id", "cloud-init clean --logs",
	}
	for name, machine := range map[string]struct {
		zypper bool
		file   string
		want   []string
	}{
		"Debian": {want: []string{
			"apt-get update", "apt-get install -y cloud-init qemu-guest-agent containernetworking-plugins nomad",
		}},
		"Debian without a network": {file: "nomad_1.11.0-1_amd64.deb", want: []string{
			"apt-get install -y -o Dir::State::lists=PACKAGES PACKAGES/nomad_1.11.0-1_amd64.deb",
		}},
		"openSUSE": {zypper: true, want: []string{
			"zypper --non-interactive install cloud-init qemu-guest-agent cni-plugins nomad",
		}},
		"openSUSE without a network": {zypper: true, file: "nomad-1.11.0-1.x86_64.rpm", want: []string{
			"zypper --non-interactive install PACKAGES/nomad-1.11.0-1.x86_64.rpm",
		}},
	} {
		dir := t.TempDir()
		if machine.file != "" {
			if err := os.WriteFile(filepath.Join(dir, machine.file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// Of which there are no keys of SSH.
		changes, _ := partsOfImageScript(t)
		script := strings.NewReplacer(packages, dir, "/etc/ssh", dir+"/ssh").Replace(changes)
		got := strings.ReplaceAll(calls(t, script, machine.zypper), dir, "PACKAGES")
		if want := append(machine.want, rest...); got != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, strings.Join(want, "\n"))
		}
	}
}

// calls runs a script with functions in place of the commands that change a machine, and returns how
// they were called.
func calls(t *testing.T, script string, zypper bool) string {
	t.Helper()
	names := []string{"apt-get", "systemctl", "rm", "truncate", "cloud-init"}
	if zypper {
		names[0] = "zypper"
	}
	log := filepath.Join(t.TempDir(), "calls")
	standIns := ""
	for _, name := range names {
		standIns += fmt.Sprintf("%s() { printf '%%s\\n' \"%s $*\" >>%q; }\n", name, name, log)
	}
	// Not sh, which may take no function with "-" in its name. Without a PATH nothing else can be called.
	cmd := exec.Command("/bin/bash", "-c", standIns+"ls() { /bin/ls \"$@\"; }\n"+script)
	cmd.Env = []string{"PATH=/nowhere"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// partsOfImageScript returns what image.sh does to the machine, and what it checks then.
func partsOfImageScript(t *testing.T) (changes, checks string) {
	t.Helper()
	_, lines, begins := strings.Cut(read(t, "image.sh"), "set -eu\n\n")
	changes, checks, divided := strings.Cut(lines, "\n# The rest changes nothing")
	if !begins || !divided {
		t.Fatal("examples/image.sh does not have the parts that this test knows")
	}
	return changes, "#" + checks
}

// What keeps each VM of a pool from joining or from ending is said where the image is made.
func TestTheImagesScriptSaysWhatTheImageLacks(t *testing.T) {
	_, checks := partsOfImageScript(t)
	const cloud, unit = "etc/cloud/cloud.cfg", "usr/lib/systemd/system/nomad.service"
	good := map[string]string{
		cloud: "users: [default]\n", "etc/cloud/cloud.cfg.d/90_dpkg.cfg": "datasource_list: [ NoCloud, None ]\n",
		unit: "ExecStart=/usr/bin/nomad agent -config /etc/nomad.d\n",
	}
	for name, image := range map[string]struct {
		enabled string
		netplan bool
		files   map[string]string // besides, or in place of, the good ones
		want    string
	}{
		"systemd-networkd":      {enabled: "systemd-networkd systemd-resolved systemd-logind dbus.socket"},
		"NetworkManager, acpid": {enabled: "NetworkManager acpid"},
		"netplan":               {enabled: "systemd-networkd systemd-resolved acpid", netplan: true},
		"a known name server":   {enabled: "systemd-networkd acpid", files: map[string]string{"etc/resolv.conf": "nameserver 192.0.2.1\n"}},
		"a list in other lines": {enabled: "wicked acpid", files: map[string]string{cloud + ".d/95.cfg": "datasource_list:\n- NoCloud\n"}},
		"no network":            {enabled: "acpid", want: "has no program that configures the network"},
		"ifupdown and netplan": {
			enabled: "networking systemd-networkd systemd-resolved acpid", netplan: true,
			want: "has more than one program that configures the network: netplan ifupdown",
		},
		"ifupdown and systemd-networkd": {
			enabled: "networking systemd-networkd systemd-resolved acpid",
			want:    "has more than one program that configures the network: systemd-networkd ifupdown",
		},
		"no name server": {
			enabled: "systemd-networkd acpid", want: "resolves no names: systemd-networkd leaves that to systemd-resolved",
		},
		"logind without D-Bus": {
			enabled: "networking systemd-logind", want: "ignores the power button: install dbus, for systemd-logind",
		},
		"cloud-init disabled": {
			enabled: "networking acpid", files: map[string]string{"etc/cloud/cloud-init.disabled": ""}, want: "has cloud-init disabled",
		},
		"another cloud": {
			enabled: "networking acpid", files: map[string]string{cloud + ".d/95.cfg": "datasource_list: [ Azure ]\n"},
			want: "has a datasource_list of cloud-init without NoCloud",
		},
		"another package of Nomad": {
			enabled: "networking acpid", files: map[string]string{unit: "ExecStart=/usr/bin/nomad agent -config /etc/nomad\n"},
			want: "has a unit of Nomad that does not read /etc/nomad.d",
		},
	} {
		dir := t.TempDir()
		for _, files := range []map[string]string{good, image.files} {
			for path, content := range files {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		machine := fmt.Sprintf("set -eu\nsystemctl() { case \" %s \" in *\" $3 \"*) ;; *) return 1 ;; esac }\n", image.enabled)
		if image.netplan {
			machine += "netplan() { :; }\n"
		}
		script := strings.NewReplacer(" /etc/cloud/", " "+dir+"/etc/cloud/", " /usr/lib/", " "+dir+"/usr/lib/",
			" /etc/systemd/", " "+dir+"/etc/systemd/", " /etc/resolv.conf", " "+dir+"/etc/resolv.conf").Replace(checks)
		out, err := exec.Command("/bin/sh", "-c", machine+script).CombinedOutput()
		want := ""
		if image.want != "" {
			want = "image.sh: this image " + image.want + "\n"
		}
		if string(out) != want || (err != nil) != (want != "") {
			t.Errorf("%s: %v: %q, want %q", name, err, out, want)
		}
	}
}

// Packer is not here: this reads its file as HCL, and what the test names.
func TestPackerRunsTheImagesScriptWithThePackagesBesideIt(t *testing.T) {
	file, problems := hclparse.NewParser().ParseHCL([]byte(read(t, "packer.pkr.hcl")), "packer.pkr.hcl")
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	var kinds []string
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		kinds = append(kinds, strings.Join(append([]string{block.Type}, block.Labels...), " "))
		switch block.Type {
		case "source":
			userData := attribute(t, block, "cd_content").AsValueMap()["user-data"].AsString()
			if !strings.HasPrefix(userData, "#cloud-config\n") || attribute(t, block, "ssh_username").AsString() != "packer" {
				t.Errorf("user data: %s", userData)
			}
			if end := attribute(t, block, "shutdown_command").AsString(); !strings.Contains(end, "userdel -rf packer") {
				t.Errorf("the user for Packer stays in the image: %s", end)
			}
		case "build":
			provisioners := block.Body.Blocks
			if len(provisioners) != 2 {
				t.Fatalf("%d provisioners", len(provisioners))
			}
			from, to := attribute(t, provisioners[0], "source").AsString(), attribute(t, provisioners[0], "destination").AsString()
			if to+from != packages {
				t.Errorf("packages are copied to %s%s", to, from)
			}
			if script := attribute(t, provisioners[1], "script").AsString(); read(t, script) != read(t, "image.sh") {
				t.Errorf("the script is %s", script)
			}
		}
	}
	want := []string{"packer", "variable cloud_image", "variable checksum", "source qemu nomad", "build"}
	if !slices.Equal(kinds, want) {
		t.Errorf("blocks %q, want %q", kinds, want)
	}
}

// attribute returns the value of an attribute that names no variable.
func attribute(t *testing.T, block *hclsyntax.Block, name string) cty.Value {
	t.Helper()
	found := block.Body.Attributes[name]
	if found == nil {
		t.Fatalf("%s %v has no %s", block.Type, block.Labels, name)
	}
	value, problems := found.Expr.Value(nil)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return value
}

func read(t *testing.T, name string) string {
	t.Helper()
	return contentOf(t, "..", "..", "examples", name)
}
