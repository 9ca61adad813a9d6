// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
	"github.com/hashicorp/nomad-autoscaler/sdk"
)

// Rule L8 on sockets: the executable under the real host, with sixty pools that drain and 24 open
// Scales, while one of the two APIs takes five seconds for each reply. Judged by what the agent and
// the servers see: calls within the agent's deadline, Leases, requests and connections.

const (
	loadPools    = 60
	openScales   = 24
	slowness     = 5 * time.Second
	statusTick   = 5 * time.Second
	statusLimit  = 10 * time.Second
	loadDuration = time.Minute
	// hashicorp/nomad:nomad/structs/config/limits.go, http_max_conns_per_client.
	nomadConnections = 100
	// It is at its most some 160 MiB, with 330 threads.
	mostMemoryKiB = 256 * 1024
)

// Requests of the measured minute. Harvester: of each pool 12 lists of Status, 20 renewals, and 12
// lists of six observations of the loop; Nomad: one list at most of each Status and observation. A
// list of a Nomad that is slow is shared by all who wait for it: one plain and one blocking list at
// a time.
const (
	mostHarvesterRequests = loadPools * (12 + 20 + 12) * 3 / 2
	mostNomadRequests     = loadPools * (12 + 6) * 3 / 2
	mostSlowNomadRequests = 2*int(loadDuration/slowness)*3/2 + mostReadsOfWork
	// What holds a drain is read once a minute (C9): two VMs of each pool drain.
	mostReadsOfWork = 2 * loadPools
)

func TestL8_sixty_pools_answer_in_time_and_keep_their_leases_while_an_api_is_slow(t *testing.T) {
	for _, slow := range []string{"harvester", "nomad"} {
		t.Run(slow, func(t *testing.T) {
			t.Parallel()
			l := startLoad(t)
			l.fill()
			l.drain()
			leases := l.leases()
			l.apis[slow].takes.Store(int64(slowness))
			for _, api := range l.apis {
				api.reset()
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				l.callStatuses(loadDuration)
			}()
			l.watchLeases(leases, done)
			most := map[string]int{"harvester": mostHarvesterRequests, "nomad": mostNomadRequests}
			if slow == "nomad" {
				most[slow] = mostSlowNomadRequests
			}
			l.report(most)
			l.end()
		})
	}
}

type load struct {
	t       *testing.T
	cluster *simulatedCluster
	apis    map[string]*slowAPI
	host    *host
	scales  chan error // of those that are to stay open
}

func startLoad(t *testing.T) *load {
	t.Helper()
	l := &load{t: t, cluster: clusterFor(t), scales: make(chan error, openScales)}
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
	return completePolicy("node_group_name", name, "node_class", name, "namespace", "nomad",
		"image", "default/ubuntu-24.04", "networks", "default/vlan10", "node_drain_deadline", "1h",
		"scale_in_wait", strconv.FormatBool(pool < openScales), "user_data",
		"#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"+
			"    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n",
		shared.PluginConfigKeyGRPCTimeout, statusLimit.String())
}

func (l *load) scale(pool int, count int64) error {
	return l.host.target.Scale(sdk.ScalingAction{Count: count, Reason: "load test"}, loadPolicy(pool))
}

func forPools(begin, end int, call func(pool int)) {
	var calls sync.WaitGroup
	for pool := begin; pool < end; pool++ {
		calls.Add(1)
		go func() {
			defer calls.Done()
			call(pool)
		}()
	}
	calls.Wait()
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

// One VM in each pool, and on its node a batch job: it runs until the deadline of a drain.
func (l *load) fill() {
	l.t.Helper()
	forPools(0, loadPools, func(pool int) {
		if err := l.scale(pool, 1); err != nil {
			l.t.Errorf("pool %d: %v", pool, err)
		}
	})
	nodes := l.nodes()
	if len(nodes) != loadPools {
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
		return len(allocations) == loadPools && !slices.ContainsFunc(allocations,
			func(a struct{ ClientStatus string }) bool { return a.ClientStatus != "running" })
	})
}

// Every pool drains its node: the first pools in Scales that stay open, the others in the background,
// which Status wakes.
func (l *load) drain() {
	l.t.Helper()
	for pool := range openScales {
		go func() { l.scales <- l.scale(pool, 0) }()
	}
	forPools(openScales, loadPools, func(pool int) {
		if err := l.scale(pool, 0); err != nil {
			l.t.Errorf("pool %d: %v", pool, err)
		}
	})
	waitUntil(l.t, "every node drains and every Lease is held", func() bool {
		forPools(openScales, loadPools, l.status)
		nodes := l.nodes()
		return !slices.ContainsFunc(nodes, func(n loadNode) bool { return !n.Drain }) &&
			len(l.leases()) == loadPools
	})
}

// A Status that is late is an error of the agent's client. One that could not read the lists says
// nothing about the VMs.
func (l *load) status(pool int) {
	got, err := l.host.target.Status(loadPolicy(pool))
	if err != nil {
		l.t.Errorf("Status of pool %d: %v", pool, err)
		return
	}
	if _, read := got.Meta["harvester.lost"]; !read {
		l.t.Errorf("Status of pool %d was not read: %+v", pool, got)
	}
}

// Of every pool at once, at every tick.
func (l *load) callStatuses(duration time.Duration) {
	end := time.Now().Add(duration)
	forPools(0, loadPools, func(pool int) {
		ticker := time.NewTicker(statusTick)
		defer ticker.Stop()
		for time.Now().Before(end) {
			l.status(pool)
			<-ticker.C
		}
	})
}

type lease struct {
	holder      string
	transitions int
	expires     time.Time
}

// The Leases that are held, by name, as the API server has them.
func (l *load) leases() map[string]lease {
	l.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				HolderIdentity       string
				LeaseDurationSeconds int
				LeaseTransitions     int
				RenewTime            time.Time
			}
		}
	}
	l.get(l.cluster.harvester+"/apis/coordination.k8s.io/v1/namespaces/nomad/leases", &list)
	held := map[string]lease{}
	for _, item := range list.Items {
		if item.Spec.HolderIdentity == "" {
			continue
		}
		held[item.Metadata.Name] = lease{item.Spec.HolderIdentity, item.Spec.LeaseTransitions,
			item.Spec.RenewTime.Add(time.Duration(item.Spec.LeaseDurationSeconds) * time.Second)}
	}
	return held
}

// No Lease of an open Scale expires, is released or changes hands. The background holds none while a drain is only
// waited for (S5).
func (l *load) watchLeases(before map[string]lease, done <-chan struct{}) {
	l.t.Helper()
	for pool := openScales; pool < loadPools; pool++ {
		delete(before, fmt.Sprintf("nomad-harvester-autoscaler-pool-%d", pool))
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		now := time.Now()
		leases := l.leases()
		for name, was := range before {
			is := leases[name]
			if is.holder != was.holder || is.transitions != was.transitions || is.expires.Before(now) {
				l.t.Errorf("Lease %s: %+v, before %+v", name, is, was)
				delete(before, name)
			}
		}
		select {
		case <-done:
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
	select {
	case err := <-l.scales:
		l.t.Errorf("a Scale has ended: %v", err)
	default:
	}
	l.host.client.Kill()
	if code := l.host.exitCode(); code != 0 {
		l.t.Errorf("exit code %d\n%s", code, l.host.stderr)
	}
	for range openScales {
		wait(l.t, "the Scale has ended", l.scales)
	}
	for _, line := range l.host.logs.find("Lost the pool's Lease: nothing more is written; the next Status continues the work") {
		l.t.Errorf("%+v", line)
	}
}

// An API with a proxy before it, which delays and counts requests.
type slowAPI struct {
	server *httptest.Server
	path   string // requests whose path contains it take long
	takes  atomic.Int64
	open   atomic.Int32
	most   atomic.Int32

	mutex  sync.Mutex
	counts map[string]int
}

func newSlowAPI(t *testing.T, address string) *slowAPI {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	a := &slowAPI{counts: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	// The simulator closes a connection that is idle for five seconds, and a starved machine may use it then.
	transport := &http.Transport{DisableKeepAlives: true}
	proxy.Transport = transport
	proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() == nil { // the client is still there
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.WriteHeader(http.StatusBadGateway)
	}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.count(r)
		takes := time.Duration(0)
		if strings.Contains(r.URL.Path, a.path) {
			takes = time.Duration(a.takes.Load())
		}
		select {
		case <-time.After(takes):
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	a.server.Config.ConnState = a.connectionIs
	a.server.Start()
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
		transport.CloseIdleConnections() // the simulator's end waits for them
	})
	return a
}

func (a *slowAPI) connectionIs(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		open := a.open.Add(1)
		for most := a.most.Load(); open > most && !a.most.CompareAndSwap(most, open); most = a.most.Load() {
		}
	case http.StateClosed, http.StateHijacked:
		a.open.Add(-1)
	}
}

var idInPath = regexp.MustCompile(`[0-9a-f-]{36}|pool-[0-9a-z-]+|nomad-harvester-autoscaler-[0-9a-z-]+`)

// "GET /v1/nodes?index"
func (a *slowAPI) count(r *http.Request) {
	kind := r.Method + " " + idInPath.ReplaceAllString(r.URL.Path, "*")
	if r.URL.Query().Has("index") {
		kind += "?index"
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.counts[kind]++
}

func (a *slowAPI) wasAsked(kind string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.counts[kind] > 0
}

func (a *slowAPI) reset() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	clear(a.counts)
}

func (a *slowAPI) requests() (total int, kinds string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var parts []string
	for kind, count := range a.counts {
		total += count
		parts = append(parts, fmt.Sprintf("%d %s", count, kind))
	}
	slices.Sort(parts)
	return total, strings.Join(parts, ", ")
}
