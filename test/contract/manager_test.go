// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad-autoscaler/agent/config"
	"github.com/hashicorp/nomad-autoscaler/plugins/manager"
	"github.com/hashicorp/nomad-autoscaler/sdk"
)

// The agent's plugin manager, with a plugin directory that holds the program as `driver`.
func newManager(t *testing.T, binary, driver string, settings map[string]string) *manager.PluginManager {
	t.Helper()
	directory := t.TempDir()
	must(t, os.Symlink(binary, filepath.Join(directory, driver)))
	t.Setenv("TMPDIR", t.TempDir())
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Off})
	m := manager.NewPluginManager(logger, directory, plugin(driver, settings))
	t.Cleanup(m.KillPlugins)
	return m
}

func plugin(driver string, settings map[string]string) map[string][]*config.Plugin {
	return map[string][]*config.Plugin{
		sdk.PluginTypeTarget: {{Name: "pool", Driver: driver, Config: settings}},
	}
}

func TestTheAgentsManagerLoadsReloadsAndCalls(t *testing.T) {
	m := newManager(t, fakePlugin, "harvester", map[string]string{"echo": "first"})
	must(t, m.Load())
	target := must1(m.GetTarget(&sdk.ScalingPolicyTarget{Name: "pool"}))(t)
	for _, want := range []string{"first", "second"} {
		status, err := target.Status(nil)
		if err != nil || status.Meta["config"] != want {
			t.Fatalf("%+v, %v", status, err)
		}
		must(t, m.Reload(plugin("harvester", map[string]string{"echo": "second"})))
	}
}

func TestTheAgentsManagerRefusesAnotherFileName(t *testing.T) {
	m := newManager(t, fakePlugin, "renamed", nil)
	if err := m.Load(); err == nil || !strings.Contains(err.Error(), "remote info doesn't match") {
		t.Errorf("error %v", err)
	}
}

func TestTheAgentsManagerReportsAWrongConfig(t *testing.T) {
	m := newManager(t, realPlugin, "harvester", map[string]string{"no_such_key": "x"})
	err := m.Load()
	if err == nil || !strings.Contains(err.Error(), "failed to set config") || !strings.Contains(err.Error(), "no_such_key") {
		t.Errorf("error %v", err)
	}
}
