// SPDX-License-Identifier: Apache-2.0

// Package contract launches the built plugin like its real hosts: with hashicorp/go-plugin's client
// and the Nomad Autoscaler's own client code.
//
// Environment: HARVESTER_BINARY, the executable; HARVESTER_FAKE_PLUGIN, the same process around a
// scripted target service (test/plugin/fake_plugin_main.cc); HARVESTER_SIMULATOR, the simulated
// cluster on sockets (test/simulator/serve_main.cc); HARVESTER_AGENT_FILES, the reader of the agent's
// files (test/cli/agent_files_main.cc). All are required.
package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

var realPlugin, fakePlugin, simulator, agentFiles string

func TestMain(m *testing.M) {
	if os.Getenv(hostModeVariable) != "" {
		runAsHost()
	}
	realPlugin = requireExecutable("HARVESTER_BINARY")
	fakePlugin = requireExecutable("HARVESTER_FAKE_PLUGIN")
	simulator = requireExecutable("HARVESTER_SIMULATOR")
	agentFiles = requireExecutable("HARVESTER_AGENT_FILES")
	// Plugins whose host was killed become our children, so that their exit code can be read.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fail("cannot become a subreaper: %v", err)
	}
	os.Exit(m.Run())
}

func requireExecutable(variable string) string {
	path, err := filepath.Abs(os.Getenv(variable))
	if err != nil || os.Getenv(variable) == "" {
		fail("%s is not set: it names the program under test", variable)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o111 == 0 || info.IsDir() {
		fail("%s: %s is no executable", variable, path)
	}
	return path
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// Runs a test against the executable and against the fake: they share all code of the process
// except main.
func forBoth(t *testing.T, test func(t *testing.T, binary string)) {
	t.Run("harvester", func(t *testing.T) { test(t, realPlugin) })
	t.Run("fake", func(t *testing.T) { test(t, fakePlugin) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must1 is must for a call that returns a value, too: must1(call())(t).
func must1[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return value
	}
}
