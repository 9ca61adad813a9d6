// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"nomad-harvester.local/test/e2e/harness"
)

func TestNomadPackRendersThePackAsTheTestsDo(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(harness.Part(t, "pack", "nomad-pack"), "render", "--no-format", "--to-dir", dir, "--auto-approve", "examples/pack")
	cmd.Dir = harness.Root
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nomad-pack render: %v\n%s", err, out)
	}
	got := must1(os.ReadFile(filepath.Join(dir, "nomad_autoscaler_harvester", "autoscaler.nomad")))(t)
	if want := renderPack(t, nil); strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
		t.Errorf("nomad-pack renders:\n%s\n--- want:\n%s", got, want)
	}
}
