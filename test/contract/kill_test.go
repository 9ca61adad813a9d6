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

// The executable, killed with SIGKILL at random moments of scale-outs and scale-ins and of the work
// that they leave to the background, against the simulated cluster on a socket. A new process gets only Status calls, as from the agent.
//
// HARVESTER_KILL_SEED determines the moments. Number of kills: kills_test.go, kills_long_test.go.

// The Lease of a terminated process expires after 20 s; a scale-out or scale-in takes a few seconds
// more.
const convergence = 3 * time.Minute

func TestC10_kills_at_random_moments_leave_nothing_behind(t *testing.T) {
	seed := int64(environmentNumber(t, "HARVESTER_KILL_SEED", 1))
	t.Logf("%d pools, %d kills in each, HARVESTER_KILL_SEED=%d", killedPools, killsPerPool, seed)
	var atWork atomic.Int32 // kills while the process had the pool's Lease
	var pools sync.WaitGroup
	for i := range killedPools {
		pools.Add(1)
		go func() {
			defer pools.Done()
			p := &killedPool{random: rand.New(rand.NewSource(seed + int64(i))), atWork: &atWork}
			err := p.start()
			defer p.stop()
			if err == nil {
				err = p.run(killsPerPool)
			}
			if err != nil {
				t.Errorf("pool %d: %v\n%s", i, err, p.transcript())
			}
		}()
	}
	pools.Wait()
	t.Logf("%d kills while the process had the Lease", atWork.Load())
	if atWork.Load() == 0 {
		t.Error("no kill met a process at work")
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

// One simulated cluster with one pool.
type killedPool struct {
	random  *rand.Rand
	atWork  *atomic.Int32
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

func (p *killedPool) start() error {
	var err error
	if p.tmp, err = os.MkdirTemp("", "kill"); err != nil {
		return err
	}
	if p.cluster, err = startCluster("--fast"); err != nil {
		return err
	}
	return p.runJob()
}

func (p *killedPool) stop() {
	if p.cluster != nil {
		p.cluster.stop()
	}
	os.RemoveAll(p.tmp)
}

func (p *killedPool) run(kills int) error {
	count := int64(0)
	for range kills {
		wanted := (count + 1 + p.random.Int63n(4)) % 5
		if err := p.scaleAndKill(wanted); err != nil {
			return err
		}
		var err error
		if count, err = p.converge(); err != nil {
			return err
		}
	}
	return nil
}

// Scales, and kills the process within a second and a half: of the call, or, while the pool's Lease is that
// of a process that was killed before, of the moment when the Scale has it.
func (p *killedPool) scaleAndKill(wanted int64) error {
	client, plugin, err := p.startPlugin()
	if err != nil {
		return err
	}
	dead, err := p.leaseHolder()
	if err != nil {
		return err
	}
	moment := time.Duration(p.random.Int63n(int64(1500 * time.Millisecond)))
	result := make(chan error, 1)
	p.logf("Scale to %d", wanted)
	go func() { result <- p.scaleUntilNotBusy(plugin, wanted) }()
	if dead != "" {
		if err := p.waitForLease(dead, result); err != nil {
			return err
		}
	}
	time.Sleep(moment)
	holder, err := p.leaseHolder()
	if err != nil {
		return err
	}
	if err := p.kill(client); err != nil {
		return err
	}
	p.logf("killed after %v; the Lease was of %q, the Scale: %v", moment, holder, <-result)
	if holder != "" {
		p.atWork.Add(1)
	}
	return nil
}

// As the agent, at each tick while the pool is busy.
func (p *killedPool) scaleUntilNotBusy(plugin target.Target, wanted int64) error {
	for until := time.Now().Add(convergence); ; time.Sleep(500 * time.Millisecond) {
		err := plugin.Scale(sdk.ScalingAction{Count: wanted, Reason: "kill test"}, p.policy())
		var busy *sdk.TargetScalingNoOpError
		if !errors.As(err, &busy) || time.Now().After(until) {
			return err
		}
	}
}

// Waits until another process than the dead one has the Lease, or the Scale has ended.
func (p *killedPool) waitForLease(dead string, ended chan error) error {
	for until := time.Now().Add(convergence); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		holder, err := p.leaseHolder()
		if err != nil || (holder != "" && holder != dead) || len(ended) > 0 {
			return err
		}
	}
	return fmt.Errorf("the Scale does not get the Lease of %s", dead)
}

// Empty: nobody has the Lease.
func (p *killedPool) leaseHolder() (string, error) {
	var list struct {
		Items []struct {
			Spec struct{ HolderIdentity string }
		}
	}
	err := get(p.cluster.harvester+ofLeases, &list)
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	return list.Items[0].Spec.HolderIdentity, nil
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
		seen, err := plugin.Status(p.policy())
		if err != nil {
			return 0, fmt.Errorf("Status: %w", err)
		}
		var left []string
		if seen.Ready {
			if left, err = p.leftovers(seen.Count); err != nil {
				return 0, err
			}
			if len(left) == 0 {
				p.logf("ready with %d", seen.Count)
				return seen.Count, nil
			}
		}
		if time.Now().After(until) {
			return 0, fmt.Errorf("it does not come to rest: ready %v, left %v", seen.Ready, left)
		}
		time.Sleep(500 * time.Millisecond) // the agent's tick
	}
}

// The wait for the terminated process' Lease uses up most of the drain deadline, and sometimes all
// of it: then the drain does not begin, and the removal is rolled back after the grace period.
func (p *killedPool) policy() map[string]string {
	return joiningPolicy("node_purge", "true", "node_drain_deadline", "25s", "drain_grace", "10s")
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
		`{"Name":"web","Count":4,"Tasks":[{"Name":"web","Driver":"mock_driver","Config":{"command":"sleep"},` +
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

const (
	ofVMs     = "/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines"
	ofLeases  = "/apis/coordination.k8s.io/v1/namespaces/nomad/leases"
	ofSecrets = "/api/v1/namespaces/nomad/secrets"
)

func (p *killedPool) list(path string) ([]simulatedObject, error) {
	var list struct{ Items []simulatedObject }
	err := get(p.cluster.harvester+path, &list)
	return list.Items, err
}

// Objects that should not exist: I4 and I5 of docs/behaviour.md, observed through the APIs.
func (p *killedPool) leftovers(count int64) ([]string, error) {
	vms, err := p.list(ofVMs)
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
		ofSecrets: "-cloudinit",
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
