// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/nomad-autoscaler/plugins/target"
	"github.com/hashicorp/nomad-autoscaler/sdk"
)

// The executable, killed with SIGKILL at random moments of scale-outs and scale-ins, against the
// simulated cluster on a socket. A new process gets only Status calls, as from the agent.
//
// HARVESTER_KILL_SEED determines the moments. Number of kills: kills_test.go, kills_long_test.go.

// The Lease of a terminated process expires after 20 s; a scale-out or scale-in takes a few seconds
// more.
const convergence = 3 * time.Minute

func TestC10_kills_at_random_moments_leave_nothing_behind(t *testing.T) {
	seed := int64(environmentNumber(t, "HARVESTER_KILL_SEED", 1))
	t.Logf("%d pools, %d kills in each, HARVESTER_KILL_SEED=%d", killedPools, killsPerPool, seed)
	var done, inScale atomic.Int32
	var pools sync.WaitGroup
	for i := range killedPools {
		pools.Add(1)
		go func() {
			defer pools.Done()
			pool := &killedPool{random: rand.New(rand.NewSource(seed + int64(i)))}
			if err := pool.run(killsPerPool, &done, &inScale); err != nil {
				t.Errorf("pool %d: %v\n%s", i, err, pool.transcript())
			}
		}()
	}
	pools.Wait()
	t.Logf("%d kills, %d of them while a Scale was open", done.Load(), inScale.Load())
	if done.Load() != killedPools*killsPerPool && !t.Failed() {
		t.Errorf("%d kills, want %d", done.Load(), killedPools*killsPerPool)
	}
	if inScale.Load() == 0 {
		t.Error("no kill met an open Scale")
	}
}

func environmentNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// One simulated cluster with one pool, and the process that currently scales it.
type killedPool struct {
	random  *rand.Rand
	cluster *simulatedCluster
	tmp     string
	logs    lockedBuffer
	events  []string
}

func (p *killedPool) logf(format string, args ...any) {
	p.events = append(p.events, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (p *killedPool) transcript() string {
	return strings.Join(p.events, "\n") + "\n--- the plugins\n" + p.logs.String()
}

func (p *killedPool) run(kills int, done, inScale *atomic.Int32) error {
	var err error
	if p.tmp, err = os.MkdirTemp("", "kill"); err != nil {
		return err
	}
	defer os.RemoveAll(p.tmp)
	if p.cluster, err = startCluster("--fast"); err != nil {
		return err
	}
	defer p.cluster.stop()
	if err := p.runJob(); err != nil {
		return err
	}
	count := int64(0)
	for range kills {
		wanted := (count + 1 + p.random.Int63n(4)) % 5
		open, err := p.killInScale(wanted)
		if err != nil {
			return err
		}
		done.Add(1)
		if open {
			inScale.Add(1)
		}
		if count, err = p.converge(); err != nil {
			return err
		}
	}
	return nil
}

// Scales, and kills the process within a second and a half of the call.
func (p *killedPool) killInScale(wanted int64) (open bool, err error) {
	client, plugin, err := p.startPlugin()
	if err != nil {
		return false, err
	}
	p.logf("Scale to %d", wanted)
	result := make(chan error, 1)
	go func() {
		result <- plugin.Scale(sdk.ScalingAction{Count: wanted, Reason: "kill test"}, p.policy())
	}()
	moment := time.Duration(p.random.Int63n(int64(1500 * time.Millisecond)))
	select {
	case err := <-result:
		p.logf("it ended by itself: %v", err)
	case <-time.After(moment):
		open = true
	}
	p.logf("kill after %v", moment)
	if err := p.kill(client); err != nil {
		return open, err
	}
	if open {
		<-result
	}
	return open, nil
}

func (p *killedPool) kill(client *goplugin.Client) error {
	process, err := os.FindProcess(client.ReattachConfig().Pid)
	if err != nil {
		return err
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	// Reaps it, and ends go-plugin's goroutines for it.
	client.Kill()
	return nil
}

// Starts a new process and calls Status until the pool is ready. Then no leftovers may exist.
func (p *killedPool) converge() (int64, error) {
	client, plugin, err := p.startPlugin()
	if err != nil {
		return 0, err
	}
	defer client.Kill()
	until := time.Now().Add(convergence)
	for {
		status, err := plugin.Status(p.policy())
		if err != nil {
			return 0, fmt.Errorf("Status: %w", err)
		}
		var left []string
		if status.Ready {
			if left, err = p.leftovers(status.Count); err != nil {
				return 0, err
			}
			if len(left) == 0 {
				p.logf("ready with %d", status.Count)
				return status.Count, nil
			}
		}
		if time.Now().After(until) {
			return 0, fmt.Errorf("it does not come to rest: ready %v, left %v", status.Ready, left)
		}
		time.Sleep(500 * time.Millisecond) // the agent's tick
	}
}

// The wait for the terminated process' Lease uses up most of the drain deadline, and sometimes all
// of it: then the drain does not begin, and the removal is rolled back after the grace period.
func (p *killedPool) policy() map[string]string {
	return completePolicy("networks", "default/vlan10", "namespace", "nomad", "image",
		"default/ubuntu-24.04", "node_purge", "true", "node_drain_deadline", "25s", "drain_grace", "10s", "user_data",
		"#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"+
			"    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n")
}

func (p *killedPool) startPlugin() (*goplugin.Client, target.Target, error) {
	config := clientConfig(realPlugin)
	config.Cmd.Env = []string{"TMPDIR=" + p.tmp}
	config.SkipHostEnv = true
	config.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &p.logs})
	client := goplugin.NewClient(config)
	rpc, err := client.Client()
	if err != nil {
		client.Kill()
		return nil, nil, fmt.Errorf("launch: %w", err)
	}
	raw, err := rpc.Dispense(sdk.PluginTypeTarget)
	if err != nil {
		client.Kill()
		return nil, nil, err
	}
	plugin := raw.(target.Target)
	if err := plugin.SetConfig(map[string]string{
		"harvester_url": p.cluster.harvester, "nomad_address": p.cluster.nomad, "auth_token": "any",
	}); err != nil {
		client.Kill()
		return nil, nil, fmt.Errorf("SetConfig: %w", err)
	}
	return client, plugin, nil
}

// Runs work on every node, so that drains have allocations to move or to wait for.
func (p *killedPool) runJob() error {
	job := `{"Job":{"ID":"web","Name":"web","Type":"service","Datacenters":["dc1"],"TaskGroups":[` +
		`{"Name":"web","Count":4,"Tasks":[{"Name":"web","Driver":"raw_exec","Config":{"command":"sleep"},` +
		`"Resources":{"CPU":10,"MemoryMB":10}}]}]}}`
	return p.cluster.run(job)
}

type simulatedObject struct {
	Metadata struct {
		Name              string
		Annotations       map[string]string
		DeletionTimestamp string
	}
}

func (p *killedPool) list(path string) ([]simulatedObject, error) {
	var list struct{ Items []simulatedObject }
	err := get(p.cluster.harvester+path, &list)
	return list.Items, err
}

// Objects that should not exist: I4 and I5 of docs/behaviour.md, observed through the APIs.
func (p *killedPool) leftovers(count int64) ([]string, error) {
	vms, err := p.list("/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines")
	if err != nil {
		return nil, err
	}
	var left []string
	standing := map[string]bool{}
	for _, vm := range vms {
		standing[vm.Metadata.Name] = true
		if _, marked := vm.Metadata.Annotations["nomad-harvester-autoscaler/scale-in"]; marked {
			left = append(left, "mark of "+vm.Metadata.Name)
		}
		if vm.Metadata.DeletionTimestamp != "" {
			left = append(left, "terminating "+vm.Metadata.Name)
		}
	}
	if int64(len(vms)) != count {
		left = append(left, fmt.Sprintf("%d VMs, count %d", len(vms), count))
	}
	for path, cut := range map[string]string{
		"/api/v1/namespaces/nomad/persistentvolumeclaims": "-disk-",
		"/api/v1/namespaces/nomad/secrets":                "-cloudinit",
	} {
		objects, err := p.list(path)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			vm, _, ours := strings.Cut(object.Metadata.Name, cut)
			if ours && !standing[vm] {
				left = append(left, object.Metadata.Name)
			}
		}
	}
	var nodes []struct {
		Name                  string
		Drain                 bool
		SchedulingEligibility string
	}
	if err := get(p.cluster.nomad+"/v1/nodes", &nodes); err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if node.Drain || (standing[node.Name] && node.SchedulingEligibility != "eligible") {
			left = append(left, "drain of node "+node.Name)
		}
	}
	return left, nil
}
