// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Root is the project's directory: the tests run in a directory below it.
var Root = func() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "CMakePresets.json")); err == nil {
			return dir
		}
	}
	return ""
}()

var (
	partsLock sync.Mutex
	partDirs  = map[string]string{}
)

// part returns the path of a real program; scripts/real-parts builds it if necessary.
func part(t testing.TB, name, program string) string {
	t.Helper()
	partsLock.Lock()
	defer partsLock.Unlock()
	if partDirs[name] == "" {
		cmd := exec.Command(filepath.Join(Root, "scripts", "real-parts"), "path", name)
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("real part %s: %v\n%s", name, err, problems.Bytes())
		}
		partDirs[name] = strings.TrimSpace(string(out))
	}
	path := filepath.Join(partDirs[name], program)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("real part %s: %v", name, err)
	}
	return path
}

// Plugin returns the path of the executable under test.
func Plugin(t testing.TB) string {
	t.Helper()
	path := os.Getenv("HARVESTER_BINARY")
	if path == "" {
		t.Fatal("HARVESTER_BINARY must name the plugin's executable")
	}
	path = must[string](t, "HARVESTER_BINARY")(filepath.Abs(path))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(fmt.Errorf("HARVESTER_BINARY: %w", err))
	}
	return path
}

// Part returns the path of a real program.
func Part(t testing.TB, name, program string) string {
	t.Helper()
	return part(t, name, program)
}
