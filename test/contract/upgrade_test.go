// SPDX-License-Identifier: Apache-2.0

//go:build long

package contract

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad-autoscaler/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Two versions of the executable on the same pools: each one is killed in turn, and the other one goes on
// from its marks, Leases, Secrets and drains, so that an upgrade and a downgrade happen in the middle of
// actions.
//
// HARVESTER_PREVIOUS is the executable of the previous version, HARVESTER_PREVIOUS_NAME its name
// (scripts/previous-version).

const (
	upgradedPools   = 20
	killsPerUpgrade = 4 // even, as the number of pools: each version is killed as often as the other one
)

// What a version may not know, each with what leaves its traces on objects. A policy with a key that a
// version does not know is refused, so that version gets none.
var laterKeys = [][]string{
	{"data_disks", "1Gi"},
	{"network_data", "version: 2\nethernets: {}\n"},
	{"publish_host", "true"},
	{"nomad_intro_token", "required", "user_data", "#cloud-config\nwrite_files:\n" +
		"- path: /etc/nomad.d/nomad.hcl\n  content: |\n" +
		"    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n" +
		"- path: /opt/nomad/data/client/intro_token.jwt\n  content: \"{{nomad_intro_token}}\"\n"},
}

func TestC10_two_versions_that_are_killed_in_turn_leave_nothing_behind(t *testing.T) {
	seed := int64(environmentNumber(t, "HARVESTER_KILL_SEED", 1))
	this := &version{name: "this version", binary: realPlugin}
	previous := &version{name: "the previous version", binary: requireExecutable("HARVESTER_PREVIOUS")}
	options := []string{"--introduction"}
	giveLaterKeys(t, previous, options)
	if unknown := giveLaterKeys(t, this, options); len(unknown) != 0 {
		t.Fatalf("this version does not know %v", unknown)
	}
	t.Logf("%d pools, %d kills in each, HARVESTER_KILL_SEED=%d", upgradedPools, killsPerUpgrade, seed)
	var interrupted atomic.Int32
	runPools(t, upgradedPools, func(i int) *killedPool {
		versions := []*version{this, previous}
		if i%2 == 1 {
			versions = []*version{previous, this}
		}
		return &killedPool{random: rand.New(rand.NewSource(seed + int64(i))), versions: versions, options: options}
	}, func(pool *killedPool) error {
		if err := pool.run(killsPerUpgrade); err != nil {
			return err
		}
		if err := pool.takeBack(&interrupted); err != nil {
			return err
		}
		return pool.bothScale()
	})
	for _, v := range []*version{this, previous} {
		v.check(t, upgradedPools*(killsPerUpgrade+1)/2)
	}
	t.Logf("%d resumptions were killed, too", interrupted.Load())
	if interrupted.Load() == 0 {
		t.Error("no kill met a resumption")
	}
}

// With HARVESTER_UPDATE_RECORDED=1 it writes the files instead.
func TestC10_the_previous_version_writes_what_was_recorded(t *testing.T) {
	name := os.Getenv("HARVESTER_PREVIOUS_NAME")
	if name == "" {
		t.Fatal("HARVESTER_PREVIOUS_NAME is not set: it is the directory of its files in test/recorded")
	}
	previous := &version{name: name, binary: requireExecutable("HARVESTER_PREVIOUS")}
	for object, annotations := range recordingOf(t, previous) {
		if os.Getenv("HARVESTER_UPDATE_RECORDED") != "" {
			writeRecorded(t, name, object, annotations)
			continue
		}
		got, want := shapeOf("", annotations), shapeOf("", readRecorded(t, name, object))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s writes\n%v\nrecorded is\n%v", object, name, got, want)
		}
	}
}

func writeRecorded(t *testing.T, version, name string, annotations map[string]string) {
	t.Helper()
	directory := filepath.Join(recordedFiles, version)
	text, err := json.MarshalIndent(annotations, "", "  ")
	if err == nil {
		err = os.MkdirAll(directory, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, name+".json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Adds to the version's policy what it knows of laterKeys, and returns the other keys.
func giveLaterKeys(t *testing.T, v *version, options []string) (unknown []string) {
	t.Helper()
	pool := &killedPool{versions: []*version{v}, options: options}
	if err := pool.start(); err != nil {
		t.Fatal(err)
	}
	defer pool.stop()
	client, plugin, err := pool.startPlugin(v)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Kill()
	for _, keys := range laterKeys {
		before := v.policy
		v.policy = append(before[:len(before):len(before)], keys...)
		_, err := plugin.Status(pool.policy(v))
		if err == nil {
			continue
		}
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), keys[0]) {
			t.Fatalf("%s: %v", v.name, err)
		}
		v.policy = before
		unknown = append(unknown, keys[0])
	}
	t.Logf("%s does not know %v", v.name, unknown)
	return unknown
}

// A new version that goes on with the work of the one before, and is killed and taken back itself.
func (p *killedPool) takeBack(interrupted *atomic.Int32) error {
	wanted := 1 + p.random.Int63n(4)
	if err := p.killInScale(p.turn(0), wanted); err != nil {
		return err
	}
	if err := p.killInResumption(p.turn(1), interrupted); err != nil {
		return err
	}
	_, err := p.converge(p.turn(0))
	return err
}

// Kills the process within a second after it has taken the Lease of the one that was killed before, or
// once the pool is ready: then nothing was to be resumed.
func (p *killedPool) killInResumption(v *version, interrupted *atomic.Int32) error {
	before, err := p.leaseHolder()
	if err != nil {
		return err
	}
	client, plugin, err := p.startPlugin(v)
	if err != nil {
		return err
	}
	defer client.Kill()
	for until := time.Now().Add(convergence); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		seen, err := plugin.Status(p.policy(v))
		if err != nil {
			return fmt.Errorf("Status: %w", err)
		}
		holder, err := p.leaseHolder()
		if err != nil {
			return err
		}
		if holder != "" && holder != before {
			time.Sleep(time.Duration(p.random.Int63n(int64(time.Second))))
			p.logf("%s: kill in its resumption", v.name)
			interrupted.Add(1)
			return p.kill(client)
		}
		if !seen.Ready {
			continue
		}
		left, err := p.leftovers(seen.Count)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			p.logf("%s: nothing to resume", v.name)
			return nil
		}
	}
	return fmt.Errorf("%s does not resume", v.name)
}

// After the kills nothing of what the other version left is in either one's way.
func (p *killedPool) bothScale() error {
	for i, v := range p.versions {
		wanted := int64(3 * (1 - i))
		if err := p.scale(v, wanted); err != nil {
			return err
		}
		count, err := p.converge(p.turn(i + 1))
		if err != nil {
			return err
		}
		if count != wanted {
			return fmt.Errorf("%s scaled to %d, and %d VMs are there", v.name, wanted, count)
		}
	}
	return nil
}

// As the agent: again at each tick until it succeeds, because the pool may wait for a next attempt.
func (p *killedPool) scale(v *version, wanted int64) error {
	client, plugin, err := p.startPlugin(v)
	if err != nil {
		return err
	}
	defer client.Kill()
	for until := time.Now().Add(convergence); ; time.Sleep(500 * time.Millisecond) {
		p.logf("%s: Scale to %d", v.name, wanted)
		err := plugin.Scale(sdk.ScalingAction{Count: wanted, Reason: "kill test"}, p.policy(v))
		if err == nil {
			return nil
		}
		p.logf("it failed: %v", err)
		if time.Now().After(until) {
			return fmt.Errorf("%s does not scale to %d: %w", v.name, wanted, err)
		}
	}
}
