// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a running program with its log.
type Process struct {
	Name string
	Log  string // path of a file with its stdout and stderr

	cmd  *exec.Cmd
	done chan struct{}
}

// start runs a program until the end of the test, or of the run (lasting). If the test failed, the end of
// the program's log is shown.
func start(t testing.TB, dir, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := must[*Process](t, "start "+name)(launch(dir, name, cmd))
	t.Cleanup(func() {
		p.Stop(5 * time.Second)
		if t.Failed() {
			t.Logf("end of %s's log:\n%s", name, tail(p.Log, 40))
		}
	})
	return p
}

// Restart kills a program of start with SIGKILL and runs it again with the same
// arguments; it does not wait until the program is ready.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	p.Kill()
	again := exec.Command(p.cmd.Path, p.cmd.Args[1:]...)
	again.Env, again.SysProcAttr = p.cmd.Env, p.cmd.SysProcAttr
	next := must[*Process](t, "restart "+p.Name)(launch(filepath.Dir(p.Log), p.Name, again))
	p.cmd, p.done = next.cmd, next.done
}

// launch runs a program in a new process group.
func launch(dir, name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, Log: filepath.Join(dir, name+".log"), cmd: cmd, done: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // a new session has a new group
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := spawn(cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid returns the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running returns whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Stop sends SIGTERM to the process and kills its group after the grace time.
func (p *Process) Stop(grace time.Duration) {
	if p.Running() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	p.Kill()
}

// Suspend stops the process without ending it, as a machine that hangs.
func (p *Process) Suspend() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a suspended process go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Kill kills the process and its group immediately.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	<-p.done
}

// Children returns the IDs of the direct children whose executable has that base
// name.
func (p *Process) Children(executable string) ([]int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.Pid()))
	if err != nil {
		return nil, err
	}
	var found []int
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // that thread has ended
		}
		for _, field := range strings.Fields(string(data)) {
			exe, err := os.Readlink("/proc/" + field + "/exe")
			if err == nil && filepath.Base(exe) == executable {
				var pid int
				if _, err := fmt.Sscan(field, &pid); err != nil {
					return nil, err
				}
				found = append(found, pid)
			}
		}
	}
	return found, nil
}

// spawn starts a command on one thread that lives as long as the test process:
// a parent-death signal is sent when the *thread* that forked ends (prctl(2)).
var spawn = func() func(*exec.Cmd) error {
	type request struct {
		cmd  *exec.Cmd
		done chan error
	}
	requests := make(chan request)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.done <- r.cmd.Start()
		}
	}()
	return func(cmd *exec.Cmd) error {
		r := request{cmd, make(chan error)}
		requests <- r
		return <-r.done
	}
}()

func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
