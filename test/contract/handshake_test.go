// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/nomad-autoscaler/plugins"
)

var cookie = plugins.Handshake.MagicCookieKey + "=" + plugins.Handshake.MagicCookieValue

// A plugin started without go-plugin's client, to test what that client hides.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	fields []string // of the handshake line
	stdout *bufio.Reader
	stderr *lockedBuffer
}

func start(t *testing.T, binary string, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: command(t, binary), stderr: &lockedBuffer{}}
	p.cmd.Env = append([]string{cookie}, env...)
	p.cmd.Stderr = p.stderr
	pipe := must1(p.cmd.StdoutPipe())(t)
	p.stdout = bufio.NewReader(pipe)
	must(t, p.cmd.Start())
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("no handshake line: %v\n%s", err, p.stderr)
	}
	p.fields = strings.Split(strings.TrimSuffix(line, "\n"), "|")
	if len(p.fields) < 6 {
		t.Fatalf("handshake line %q", line)
	}
	return p
}

// Ends the plugin with SIGTERM: exit code 0, no further output on stdout.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	rest, err := io.ReadAll(p.stdout)
	if err != nil || len(rest) != 0 {
		p.t.Errorf("stdout after the handshake line: %q (%v)", rest, err)
	}
	if code := exitCodeOf(p.cmd.Wait()); code != 0 {
		p.t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	checkStderr(p.t, p.stderr.String())
}

func run(t *testing.T, binary string, env ...string) (code int, stdout, stderr string) {
	cmd := command(t, binary)
	cmd.Env = env
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	code = exitCodeOf(cmd.Run())
	return code, out.String(), err.String()
}

func TestHandshakeLineNamesAPrivateSocket(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		tmp := t.TempDir()
		p := start(t, binary, "TMPDIR="+tmp)
		if got := strings.Join(p.fields[:3], "|"); got != "1|1|unix" || p.fields[4] != "grpc" {
			t.Errorf("fields %q", p.fields)
		}
		if len(p.fields) != 6 || p.fields[5] != "" {
			t.Errorf("fields after the protocol: %q", p.fields[5:])
		}
		checkMode(t, filepath.Dir(p.fields[3]), os.ModeDir|0o700)
		checkMode(t, p.fields[3], os.ModeSocket|0o600)
		if filepath.Dir(filepath.Dir(p.fields[3])) != tmp {
			t.Errorf("socket %s is not in %s", p.fields[3], tmp)
		}
		p.stop()
		checkEmpty(t, tmp)
	})
}

func checkMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info := must1(os.Lstat(path))(t)
	if info.Mode() != want {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

func TestHostThatInsistsOnMultiplexingSaysSo(t *testing.T) {
	config := clientConfig(fakePlugin)
	config.GRPCBrokerMultiplex = true
	config.Logger = hclog.NewNullLogger()
	t.Setenv("TMPDIR", t.TempDir())
	client := goplugin.NewClient(config)
	defer client.Kill()
	if _, err := client.Client(); err == nil || !strings.Contains(err.Error(), goplugin.ErrGRPCBrokerMuxNotSupported.Error()) {
		t.Errorf("error %v", err)
	}
}

func TestTmpdirWithCharactersOfAnUriServes(t *testing.T) {
	tmp := filepath.Join(t.TempDir(), "100% of #1 ü?")
	must(t, os.Mkdir(tmp, 0o755))
	h := launch(t, fakePlugin, withEnv("TMPDIR="+tmp))
	h.status(nil)
	h.client.Kill()
	checkEmpty(t, tmp)
}

func TestP1NoUsableDirectoryExitsWithTheReason(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		file := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(file, nil, 0o600))
		for _, variable := range []string{"TMPDIR", "PLUGIN_UNIX_SOCKET_DIR"} {
			for _, directory := range []string{"/no/such/directory", file} {
				code, stdout, stderr := run(t, binary, cookie, variable+"="+directory)
				if code != 1 || stdout != "" {
					t.Errorf("%s=%s: exit code %d, stdout %q", variable, directory, code, stdout)
				}
				if !strings.Contains(stderr, directory) || !strings.Contains(stderr, variable) {
					t.Errorf("%s=%s: stderr %q", variable, directory, stderr)
				}
				checkStderr(t, stderr)
			}
		}
	})
}

func TestForeignProtocolVersionIsAnsweredWithOurs(t *testing.T) {
	for _, versions := range []string{"1", "2,1", "2,3", "x"} {
		p := start(t, fakePlugin, "TMPDIR="+t.TempDir(), "PLUGIN_PROTOCOL_VERSIONS="+versions)
		if p.fields[1] != "1" {
			t.Errorf("version %s", p.fields[1])
		}
		p.stop()
	}
}

func TestHandshakeThatNobodyReadsEndsThePlugin(t *testing.T) {
	tmp := t.TempDir()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	stderr := &lockedBuffer{}
	cmd := command(t, fakePlugin)
	cmd.Env = []string{cookie, "TMPDIR=" + tmp}
	cmd.Stdout, cmd.Stderr = write, stderr
	must(t, cmd.Start())
	write.Close()
	if code := exitCodeOf(cmd.Wait()); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "handshake") {
		t.Errorf("stderr %q", fmt.Sprint(stderr))
	}
	checkEmpty(t, tmp)
}
