// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad-autoscaler/agent/config"
	"github.com/hashicorp/nomad-autoscaler/plugins/apm"
	"github.com/hashicorp/nomad-autoscaler/plugins/manager"
	"github.com/hashicorp/nomad-autoscaler/sdk"
)

// The agent's plugin manager with an apm block of the real plugin.
func newApm(t *testing.T, settings map[string]string) (*manager.PluginManager, error) {
	t.Helper()
	directory := t.TempDir()
	must(t, os.Symlink(realPlugin, filepath.Join(directory, "harvester")))
	t.Setenv("TMPDIR", t.TempDir())
	m := manager.NewPluginManager(hclog.New(&hclog.LoggerOptions{Level: hclog.Off}), directory,
		map[string][]*config.Plugin{
			sdk.PluginTypeAPM: {{Name: "demand", Driver: "harvester", Args: []string{"apm"}, Config: settings}},
		})
	t.Cleanup(m.KillPlugins)
	return m, m.Load()
}

func demandOf(t *testing.T, nomad string) apm.APM {
	t.Helper()
	m := must1(newApm(t, map[string]string{"nomad_address": nomad}))(t)
	demand := must1(m.GetAPM("demand"))(t)
	return demand
}

const sizedQuery = "nodes-needed node_class=batch node=(cpu=4000,memory=4096,disk=20000)"

// Ten nodes hold 40 of its allocations.
const burst = `{"Job": {"ID": "burst", "Type": "service", "Datacenters": ["*"],
  "Constraints": [{"LTarget": "${node.class}", "RTarget": "batch", "Operand": "="}],
  "TaskGroups": [{"Name": "server", "Count": 40, "Tasks": [
    {"Name": "main", "Driver": "docker", "Resources": {"CPU": 1000, "MemoryMB": 1024}}]}]}}`

func TestTheAgentsManagerAsksHowManyNodesTheWorkNeeds(t *testing.T) {
	cluster := clusterFor(t)
	demand := demandOf(t, cluster.nomad)
	must(t, cluster.run(burst))
	before := time.Now()
	values := must1(demand.Query(sizedQuery, sdk.TimeRange{From: before.Add(-time.Minute), To: before}))(t)
	if len(values) != 1 || values[0].Value != 10 {
		t.Fatalf("%+v", values)
	}
	if age := values[0].Timestamp.Sub(before); age < -time.Second || age > time.Minute {
		t.Errorf("the value is of %v, asked at %v", values[0].Timestamp, before)
	}
}

func TestTheAgentLogsAWrongQueryInOneLine(t *testing.T) {
	_, err := demandOf(t, clusterFor(t).nomad).Query("nodes-needed node_clas=batch idle_for=x", sdk.TimeRange{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"node_class", "idle_for"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("several lines: %v", err)
	}
}

// On either text the agent restarts all policies.
func TestANomadThatDoesNotAnswerRestartsNoPolicy(t *testing.T) {
	cluster := clusterFor(t)
	demand := demandOf(t, cluster.nomad)
	cluster.stop()
	_, err := demand.Query(sizedQuery, sdk.TimeRange{})
	if err == nil {
		t.Fatal("no error")
	}
	if text := err.Error(); strings.Contains(text, "EOF") || strings.Contains(text, "connection refused") {
		t.Error(text)
	}
}

func TestDynamicApplicationSizingIsNotAnswered(t *testing.T) {
	_, err := demandOf(t, clusterFor(t).nomad).QueryMultiple(sizedQuery, sdk.TimeRange{})
	if err == nil || !strings.Contains(err.Error(), "Dynamic Application Sizing") {
		t.Errorf("error %v", err)
	}
}

func TestAKeyOfATargetBlockInAnApmBlockIsRefused(t *testing.T) {
	_, err := newApm(t, map[string]string{"events": "true"})
	if err == nil || !strings.Contains(err.Error(), "not a key of an apm block") {
		t.Errorf("error %v", err)
	}
}
