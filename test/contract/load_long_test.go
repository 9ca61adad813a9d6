// SPDX-License-Identifier: Apache-2.0

//go:build long

package contract

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
	"github.com/hashicorp/nomad-autoscaler/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Rule L8 on sockets: the executable under the real host, with sixty pools that drain, and then Scales
// of 24 more at once, while one of the two APIs takes five seconds for each reply. Judged by what the
// agent and the servers see: calls within the agent's deadline, Leases, requests and connections.

const (
	drainingPools = 60
	scaledPools   = 24
	loadPools     = drainingPools + scaledPools
	slowness      = 5 * time.Second
	statusTick    = 5 * time.Second
	loadDuration  = 30 * time.Second
	// A Scale is accepted within a minute (C16); the rest is for the release of its Lease and for a busy machine.
	scaleLimit = 90 * time.Second
	// hashicorp/nomad:nomad/structs/config/limits.go, http_max_conns_per_client.
	nomadConnections = 100
	// It is at its most some 160 MiB, with 330 threads.
	mostMemoryKiB = 256 * 1024
)

// Requests of the measured half minute. Harvester: of each pool 6 lists of Status, and 12 lists of six
// observations of the loop; Nomad: one list at most of each Status and observation. A list of a Nomad
// that is slow is shared by all who wait for it: one list, one of a single node (ADR 21) and one
// blocking list at a time.
const (
	mostHarvesterRequests = drainingPools * (6 + 12) * 3 / 2
	mostNomadRequests     = drainingPools * (6 + 6) * 3 / 2
	mostSlowNomadRequests = 3*int(loadDuration/slowness)*2 + mostReadsOfWork
	// What holds a drain is read once a minute (C9).
	mostReadsOfWork = drainingPools
)

func TestL8_sixty_pools_answer_in_time_and_keep_their_leases_while_an_api_is_slow(t *testing.T) {
	for _, slow := range []string{"harvester", "nomad"} {
		t.Run(slow, func(t *testing.T) {
			t.Parallel()
			l := startLoad(t)
			l.fill()
			l.drain()
			l.apis[slow].takes.Store(int64(slowness))
			for _, api := range l.apis {
				api.reset()
			}
			measured := make(chan struct{})
			time.AfterFunc(loadDuration, func() { close(measured) })
			l.callStatuses(drainingPools, measured, l.read)
			most := map[string]int{"harvester": mostHarvesterRequests, "nomad": mostNomadRequests}
			if slow == "nomad" {
				most[slow] = mostSlowNomadRequests
			}
			l.report(most)
			l.scaleMore()
			l.end()
		})
	}
}

type load struct {
	t       *testing.T
	cluster *simulatedCluster
	apis    map[string]*slowAPI
	host    *host
	scales  sync.Map // Leases of the pools whose Scale is open, by name
}

func startLoad(t *testing.T) *load {
	t.Helper()
	l := &load{t: t, cluster: clusterFor(t)}
	l.apis = map[string]*slowAPI{
		"harvester": newSlowAPI(t, l.cluster.harvester), "nomad": newSlowAPI(t, l.cluster.nomad)}
	l.host = launch(t, realPlugin)
	if err := l.host.target.SetConfig(map[string]string{"harvester_url": l.apis["harvester"].server.URL,
		"nomad_address": l.apis["nomad"].server.URL, "auth_token": "any"}); err != nil {
		t.Fatal(err)
	}
	return l
}

// The agent's own deadline of a Status goes with the policy.
func loadPolicy(pool int) map[string]string {
	name := fmt.Sprintf("pool-%d", pool)
	return joiningPolicy("node_group_name", name, "node_class", name, "node_drain_deadline", "1h",
		shared.PluginConfigKeyGRPCTimeout, statusLimit.String())
}

func (l *load) scale(pool int, count int64) error {
	return l.host.target.Scale(sdk.ScalingAction{Count: count, Reason: "load test"}, loadPolicy(pool))
}

type loadNode struct {
	ID    string
	Name  string
	Drain bool
}

func (l *load) get(url string, into any) {
	l.t.Helper()
	if err := get(url, into); err != nil {
		l.t.Fatal(err)
	}
}

func (l *load) nodes() (nodes []loadNode) {
	l.t.Helper()
	l.get(l.cluster.nomad+"/v1/nodes", &nodes)
	return nodes
}

// Scales pools at once while nothing is slow.
func (l *load) scaleAll(pools int, count int64) {
	l.t.Helper()
	began := time.Now()
	forPools(0, pools, func(pool int) {
		if err := l.scale(pool, count); err != nil {
			l.t.Errorf("pool %d: %v", pool, err)
		}
	})
	l.t.Logf("%d Scales to %d were accepted within %v", pools, count, time.Since(began))
}

// One VM in each draining pool, and on its node a batch job: it runs until the deadline of a drain.
func (l *load) fill() {
	l.t.Helper()
	l.scaleAll(drainingPools, 1)
	waitUntil(l.t, "every VM is ready", func() bool {
		ready := atomic.Int32{}
		forPools(0, drainingPools, func(pool int) {
			if l.status(pool).Ready {
				ready.Add(1)
			}
		})
		return ready.Load() == drainingPools
	})
	nodes := l.nodes()
	if len(nodes) != drainingPools {
		l.t.Fatalf("%d nodes", len(nodes))
	}
	for _, node := range nodes {
		if err := l.cluster.run(fmt.Sprintf(`{"Job":{"ID":"batch-%s","Type":"batch","Constraints":`+
			`[{"LTarget":"${node.unique.name}","RTarget":"%s","Operand":"="}],"TaskGroups":[{"Name":"work",`+
			`"Count":1,"Tasks":[{"Name":"work","Driver":"mock_driver"}]}]}}`, node.Name, node.Name)); err != nil {
			l.t.Fatal(err)
		}
	}
	waitUntil(l.t, "every node has work", func() bool {
		var allocations []struct{ ClientStatus string }
		l.get(l.cluster.nomad+"/v1/allocations", &allocations)
		return len(allocations) == drainingPools && !slices.ContainsFunc(allocations,
			func(a struct{ ClientStatus string }) bool { return a.ClientStatus != "running" })
	})
}

// Every node drains, and the background waits.
func (l *load) drain() {
	l.t.Helper()
	l.scaleAll(drainingPools, 0)
	began := time.Now()
	// A few pools look at their drains at any time.
	waitUntil(l.t, "every node drains, and the background waits", func() bool {
		return len(l.leases()) <= drainingPools/10 && !slices.ContainsFunc(l.nodes(), func(n loadNode) bool { return !n.Drain })
	})
	l.t.Logf("the background waits after %v", time.Since(began))
	forPools(0, drainingPools, l.read)
}

func (l *load) grow(pool int) {
	lease := fmt.Sprintf("nomad-harvester-autoscaler-pool-%d", pool)
	l.scales.Store(lease, nil)
	began := time.Now()
	err := l.scale(pool, 1)
	l.scales.Delete(lease)
	// With a slow Harvester a Scale may reach its limit.
	if took := time.Since(began); (err != nil && status.Code(err) != codes.DeadlineExceeded) || took > scaleLimit {
		l.t.Errorf("the Scale of pool %d took %v: %v", pool, took, err)
	}
}

// A Status that is late is an error of the agent's client.
func (l *load) status(pool int) *sdk.TargetStatus {
	got, err := l.host.target.Status(loadPolicy(pool))
	if err != nil {
		l.t.Errorf("Status of pool %d: %v", pool, err)
		return &sdk.TargetStatus{}
	}
	return got
}

// One that could not read the lists says nothing about the VMs. Beside a Scale there may be no time
// for what has just changed.
func (l *load) read(pool int) {
	got := l.status(pool)
	if _, read := got.Meta["harvester.lost"]; !read {
		l.t.Errorf("Status of pool %d was not read: %+v", pool, got)
	}
}

// Of the pools at once, at every tick.
func (l *load) callStatuses(pools int, end <-chan struct{}, call func(pool int)) {
	forPools(0, pools, func(pool int) {
		ticker := time.NewTicker(statusTick)
		defer ticker.Stop()
		for {
			call(pool)
			select {
			case <-end:
				return
			case <-ticker.C:
			}
		}
	})
}

// Scales of other pools at once, and meanwhile Statuses of all.
func (l *load) scaleMore() {
	l.t.Helper()
	scaled, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(scaled)
		forPools(drainingPools, loadPools, l.grow)
	}()
	go func() {
		defer close(answered)
		l.callStatuses(loadPools, scaled, func(pool int) { l.status(pool) })
	}()
	l.watchLeases(scaled)
	<-answered
}

// When the Leases that are held expire, by name, as the API server has them.
func (l *load) leases() map[string]time.Time {
	l.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				HolderIdentity       string
				LeaseDurationSeconds int
				RenewTime            time.Time
			}
		}
	}
	l.get(l.cluster.harvester+ofLeases, &list)
	expire := map[string]time.Time{}
	for _, item := range list.Items {
		if item.Spec.HolderIdentity != "" {
			expire[item.Metadata.Name] =
				item.Spec.RenewTime.Add(time.Duration(item.Spec.LeaseDurationSeconds) * time.Second)
		}
	}
	return expire
}

// No Lease of a Scale expires. The background holds none while a drain is only waited for (S5).
func (l *load) watchLeases(done <-chan struct{}) {
	l.t.Helper()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	held := map[string]bool{}
	for {
		now := time.Now()
		for name, expires := range l.leases() {
			if _, open := l.scales.Load(name); !open {
				continue
			}
			held[name] = true
			if expires.Before(now) {
				l.t.Errorf("Lease %s has expired at %v", name, expires)
			}
		}
		select {
		case <-done:
			if len(held) != scaledPools {
				l.t.Errorf("%d Leases were held by a Scale, want %d", len(held), scaledPools)
			}
			return
		case <-ticker.C:
		}
	}
}

// What the minute has cost.
func (l *load) report(mostRequests map[string]int) {
	l.t.Helper()
	for name, api := range l.apis {
		total, kinds := api.requests()
		if total > mostRequests[name] {
			l.t.Errorf("%d requests to %s, at most %d expected", total, name, mostRequests[name])
		}
		l.t.Logf("%s: %d requests in %v, %d connections at most; %s", name, total, loadDuration,
			api.most.Load(), kinds)
	}
	if reads := l.apis["nomad"].asked("GET /v1/node/*/allocations"); reads > mostReadsOfWork {
		l.t.Errorf("%d reads of what holds a drain, at most %d expected", reads, mostReadsOfWork)
	}
	if most := l.apis["nomad"].most.Load(); most >= nomadConnections {
		l.t.Errorf("%d connections to Nomad at once", most)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.host.client.ReattachConfig().Pid))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, name := range []string{"VmRSS", "VmHWM", "Threads"} {
		found := regexp.MustCompile(name + `:\s+(\d+)`).FindSubmatch(status)
		if found == nil {
			l.t.Fatalf("no %s in %s", name, status)
		}
		l.t.Logf("%s %s", name, found[1])
		if number, _ := strconv.Atoi(string(found[1])); name == "VmHWM" && number > mostMemoryKiB {
			l.t.Errorf("the process has used %d KiB", number)
		}
	}
}

// Rule P1 with all of this under way: the host kills what still runs after two seconds.
func (l *load) end() {
	l.t.Helper()
	l.host.client.Kill()
	if code := l.host.exitCode(); code != 0 {
		l.t.Errorf("exit code %d\n%s", code, l.host.stderr)
	}
	for _, line := range l.host.logs.find("Lost the pool's Lease: nothing more is written; the next Status continues the work") {
		l.t.Errorf("%+v", line)
	}
}
