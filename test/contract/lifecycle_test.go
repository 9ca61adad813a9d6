// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
)

// The host sends SIGKILL to a plugin that still runs two seconds after Shutdown: exit code 0 proves
// that it ended in time.
func TestP1KillEndsThePluginInTime(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		h := launch(t, binary)
		h.client.Kill()
		h.checkEndedInOrder()
	})
}

func TestP1KillEndsThePluginInTimeWhateverAScaleDoes(t *testing.T) {
	for _, script := range []string{"block", "stubborn"} {
		t.Run(script, func(t *testing.T) {
			h := launch(t, fakePlugin)
			scale := h.scaleInBackground(map[string]string{"do": script})
			h.client.Kill()
			h.checkEndedInOrder()
			if err := wait(t, "the Scale has ended", scale); err == nil {
				t.Error("the Scale succeeded")
			}
		})
	}
}

func TestP1SigtermIsAnOrderlyEnd(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		tmp := t.TempDir()
		p := start(t, binary, "TMPDIR="+tmp)
		p.stop()
		checkEmpty(t, tmp)
	})
}

// What reaches the agent's whole process group: Ctrl-C, and a request to read its configuration again.
func TestL9SignalsToTheHostsProcessGroupAreIgnored(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		h := launch(t, binary)
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
			for range 3 {
				must(t, h.cmd.Process.Signal(signal))
			}
			if err := h.rpc.Ping(); err != nil {
				t.Errorf("after %v: %v", signal, err)
			}
		}
		h.client.Kill()
		h.checkEndedInOrder()
	})
}

const hostModeVariable = "CONTRACT_TEST_RUN_AS_HOST"

// The test binary as a separate host: launches the plugin, prints its PID, and waits to be killed.
func runAsHost() {
	config := clientConfig(os.Getenv(hostModeVariable))
	client := goplugin.NewClient(config)
	if _, err := client.Client(); err != nil {
		fail("%v", err)
	}
	fmt.Println(config.Cmd.Process.Pid)
	select {}
}

func TestP1DeathOfTheHostIsAnOrderlyEnd(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		tmp := t.TempDir()
		self := must1(os.Executable())(t)
		host := command(t, self)
		host.Env = []string{hostModeVariable + "=" + binary, "TMPDIR=" + tmp}
		stdout := must1(host.StdoutPipe())(t)
		must(t, host.Start())
		line := must1(bufio.NewReader(stdout).ReadString('\n'))(t)
		pid := must1(strconv.Atoi(strings.TrimSpace(line)))(t)
		must(t, host.Process.Kill())
		_ = host.Wait()

		var ended unix.WaitStatus
		waitUntil(t, "the orphaned plugin has ended", func() bool {
			got, err := unix.Wait4(pid, &ended, unix.WNOHANG, nil)
			return err == nil && got == pid
		})
		if !ended.Exited() || ended.ExitStatus() != 0 {
			t.Errorf("wait status %v", ended)
		}
		checkEmpty(t, tmp)
	})
}

func TestP3AbnormalEndIsOneLineOfTheLog(t *testing.T) {
	h := launch(t, fakePlugin)
	if _, err := h.target.Status(map[string]string{"do": "terminate"}); err == nil {
		t.Error("the call succeeded")
	}
	if code := h.exitCode(); code != -1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(h.stderr.String(), "ends abnormally") {
		t.Errorf("stderr %q", h.stderr)
	}
	// An aborted process cannot remove its files.
	if err := os.RemoveAll(h.tmp); err == nil {
		err = os.Mkdir(h.tmp, 0o755)
		if err != nil {
			t.Fatal(err)
		}
	}
}
