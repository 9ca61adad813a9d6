// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// How many mixes of work are tried, and the seed of the first one; NOMAD_HARVESTER_DEMAND_MIXES and
// NOMAD_HARVESTER_DEMAND_SEED try others.
const (
	demandMixes = 40
	demandSeed  = 1
)

// How often Nomad may pack worse than it was counted, so that the rest is ordered by the next answer:
// it tries two nodes at random, or a few. And how often it may pack better. Per cent of the mixes, and
// of the nodes.
const (
	worseMixes  = 20
	worseNodes  = 5
	betterMixes = 10
	rounds      = 3
)

// A mix is judged by real Nomad: with as many nodes as the executable orders, and with one less.
type demandMix struct {
	t     *testing.T
	nomad *harness.Nomad
	nodes *harness.Nodes
	name  string // of its datacenter, and the prefix of its jobs and nodes
	rand  *rand.Rand
	node  harness.FakeNode // what each of its nodes is like
	made  int
	jobs  []string
}

type demandGroup struct {
	Job, Group, Verdict, Why string
	Pending, Fits, Nodes     int64
}

type demandPool struct {
	Needed, Busy, Kept, Added int64
	UsedIdle                  int64 `json:"used_idle"`
	Probe                     bool
	Groups                    []demandGroup
}

func envInt(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

func newMix(t *testing.T, nomad *harness.Nomad, nodes *harness.Nodes, prefix string, seed int64) *demandMix {
	name := fmt.Sprint(prefix, seed)
	m := &demandMix{t: t, nomad: nomad, nodes: nodes, name: name, rand: rand.New(rand.NewSource(seed)), node: harness.FakeNode{
		Datacenter: name, Class: "batch", CPU: 4000, MemoryMB: 8192, DiskMB: 20000, Cores: 4,
		Drivers:    []string{"docker"},
		Attributes: map[string]string{"kernel.name": "linux", "os.version": "12.5.0"},
	}}
	if m.rand.Intn(3) == 0 {
		m.node.Devices = map[string]int{"T4": 2}
	}
	return m
}

func (m *demandMix) addNodes(count int64) {
	m.t.Helper()
	for range count {
		m.made++
		node := m.node
		node.ID = fmt.Sprintf("%08x-0000-0000-0000-%012x", m.rand.Uint32(), m.rand.Int63n(1<<47))
		node.Name = fmt.Sprintf("%s-n%d", m.name, m.made)
		m.nodes.Register(m.t, node)
	}
}

// A job of one group. Its size is one of those that fit on an empty node.
func (m *demandMix) job(name string, count int, cpu, memory int64) harness.Object {
	m.jobs = append(m.jobs, name)
	kind := []string{"service", "batch"}[m.rand.Intn(2)]
	task := harness.Object{
		"Name": "t", "Driver": "docker", "Config": harness.Object{"image": "none"},
		"Resources": harness.Object{"CPU": cpu, "MemoryMB": memory},
	}
	group := harness.Object{
		"Name": "g", "Count": count, "Tasks": []any{task},
		"EphemeralDisk": harness.Object{"SizeMB": 300},
	}
	return harness.Object{
		"ID": name, "Name": name, "Type": kind, "Datacenters": []string{m.name},
		"Priority": 50, "TaskGroups": []any{group},
	}
}

// vary gives a job what makes packing harder, and says whether a node could ever hold it.
func (m *demandMix) vary(job harness.Object) (possible bool) {
	group := job["TaskGroups"].([]any)[0].(harness.Object)
	resources := group["Tasks"].([]any)[0].(harness.Object)["Resources"].(harness.Object)
	possible = true
	if m.rand.Intn(3) == 0 {
		job["Priority"] = 10 * (1 + m.rand.Intn(9))
	}
	var constraints []any
	constrain := func(left, operand, right string) {
		constraints = append(constraints, harness.Object{"LTarget": left, "Operand": operand, "RTarget": right})
	}
	if m.rand.Intn(5) == 0 {
		constrain("", "distinct_hosts", "true")
	}
	if m.rand.Intn(5) == 0 {
		constrain("${attr.os.version}", []string{"version", "semver"}[m.rand.Intn(2)], ">= 12.0.0")
	}
	if m.rand.Intn(8) == 0 {
		constrain("${attr.kernel.name}", "=", "windows")
		possible = false
	}
	if m.rand.Intn(12) == 0 {
		resources["MemoryMB"] = m.node.MemoryMB + 1
		possible = false
	}
	group["Constraints"] = constraints
	if len(m.node.Devices) > 0 && m.rand.Intn(2) == 0 {
		resources["Devices"] = []any{harness.Object{"Name": "nvidia/gpu", "Count": 1 + m.rand.Intn(2)}}
	}
	if m.rand.Intn(6) == 0 {
		delete(resources, "CPU")
		resources["Cores"] = 1 + m.rand.Intn(2)
	}
	if m.rand.Intn(6) == 0 {
		port := harness.Object{"Label": "p", "Value": 8000 + m.rand.Intn(2)}
		group["Networks"] = []any{harness.Object{"Mode": "host", "ReservedPorts": []any{port}}}
	}
	return possible
}

// settle waits until Nomad has placed what it can.
func (m *demandMix) settle(quiet time.Duration) {
	m.t.Helper()
	last, since := "", time.Now()
	harness.Eventually(m.t, time.Minute, "Nomad has placed what it can", func() error {
		state := ""
		for _, path := range []string{"/v1/allocations?namespace=*", "/v1/evaluations?namespace=*"} {
			response, body, err := m.nomad.Request("GET", path, nil)
			if err != nil {
				return err
			}
			if strings.Contains(string(body), `"Status":"pending"`) {
				return fmt.Errorf("an evaluation is pending")
			}
			state += response.Header.Get("X-Nomad-Index") + " "
		}
		if state != last {
			last, since = state, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("it changed %v ago", time.Since(since))
		}
		return nil
	})
}

// waiting returns the jobs of the mix of which something has no place.
func (m *demandMix) waiting() map[string]int64 {
	m.t.Helper()
	evaluations := must1(m.nomad.List("/v1/evaluations?status=blocked&namespace=*"))(m.t)
	jobs := map[string]int64{}
	for _, evaluation := range evaluations {
		if job := evaluation.Str("JobID"); slices.Contains(m.jobs, job) {
			jobs[job]++
		}
	}
	return jobs
}

func (m *demandMix) ask() demandPool {
	m.t.Helper()
	cmd := exec.Command(harness.Plugin(m.t), "demand", "-o", "json", "nodes-needed datacenter="+m.name)
	cmd.Env = []string{"NOMAD_ADDR=" + m.nomad.URL}
	out, err := cmd.CombinedOutput()
	var document struct{ Pools []demandPool }
	if err == nil {
		err = json.Unmarshal(out[max(0, strings.Index(string(out), "{")):], &document)
	}
	if err != nil || len(document.Pools) != 1 {
		m.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return document.Pools[0]
}

// run tries one mix. It returns how many nodes were ordered first, how many more Nomad needed, and
// whether one less would have been enough.
func (m *demandMix) run() (ordered, more int64, oneLessIsEnough bool) {
	m.t.Helper()
	m.addNodes(1 + m.rand.Int63n(4))
	for i := range m.rand.Intn(4) {
		m.nomad.Run(m.t, m.job(fmt.Sprintf("%s-old%d", m.name, i), 1+m.rand.Intn(2), 100*(1+m.rand.Int63n(20)), 256*(1+m.rand.Int63n(16))))
	}
	m.settle(300 * time.Millisecond)
	impossible := map[string]bool{}
	for i := range 1 + m.rand.Intn(6) {
		job := m.job(fmt.Sprintf("%s-j%d", m.name, i), 1+m.rand.Intn(12), 100*(1+m.rand.Int63n(35)), 256*(1+m.rand.Int63n(30)))
		impossible[job.Str("ID")] = !m.vary(job)
		m.nomad.Run(m.t, job)
	}
	m.settle(300 * time.Millisecond)
	demand := m.ask()
	for _, group := range demand.Groups {
		if strings.HasPrefix(group.Job, m.name+"-") && impossible[group.Job] != (group.Verdict == "impossible") {
			m.t.Errorf("%s: %s is %s: %s", m.name, group.Job, group.Verdict, group.Why)
		}
	}
	ordered = demand.Added
	if ordered > 0 {
		m.addNodes(ordered - 1)
		m.settle(300 * time.Millisecond)
		possible := m.waiting()
		maps.DeleteFunc(possible, func(job string, _ int64) bool { return impossible[job] })
		oneLessIsEnough = len(possible) == 0
		m.addNodes(1)
	}
	for round := 0; ; round++ {
		m.settle(300 * time.Millisecond)
		waiting := m.waiting()
		maps.DeleteFunc(waiting, func(job string, _ int64) bool { return impossible[job] })
		if len(waiting) == 0 {
			return ordered, more, oneLessIsEnough
		}
		if demand = m.ask(); demand.Added == 0 || round == rounds {
			m.t.Errorf("%s: %v wait, and nothing is ordered for them: %+v", m.name, waiting, demand)
			return ordered, more, oneLessIsEnough
		}
		more += demand.Added
		m.addNodes(demand.Added)
	}
}

// end removes the mix, so that the next one is as fast.
func (m *demandMix) end() {
	m.t.Helper()
	for _, job := range m.jobs {
		must1(m.nomad.Do("DELETE", "/v1/job/"+job+"?purge=true", nil))(m.t)
	}
	nodes := must1(m.nomad.List("/v1/nodes"))(m.t)
	for _, node := range nodes {
		if node.Str("Datacenter") != m.name {
			continue
		}
		must1(m.nomad.Do("POST", "/v1/node/"+node.Str("ID")+"/purge", nil))(m.t)
	}
}

// Real Nomad says whether the count is right: with the nodes that are ordered all work has a place,
// and with one less it has not.
func TestDemandIsWhatRealNomadNeeds(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{WithoutACLs: true})
	nodes := harness.StartNodes(t, s.Nomad)
	mixes := envInt(t, "NOMAD_HARVESTER_DEMAND_MIXES", demandMixes)
	first := envInt(t, "NOMAD_HARVESTER_DEMAND_SEED", demandSeed)
	var tooFew, tooMany, ordered, more int64
	for seed := first; seed < first+mixes; seed++ {
		m := newMix(t, s.Nomad, nodes, "m", seed)
		mixOrdered, mixMore, oneLess := m.run()
		ordered += mixOrdered
		more += mixMore
		if mixMore > 0 {
			tooFew++
			t.Logf("seed %d: Nomad packs worse: %d nodes, then %d more", seed, mixOrdered, mixMore)
		}
		if oneLess {
			tooMany++
			t.Logf("seed %d: one node less than %d is enough", seed, mixOrdered)
		}
		m.end()
	}
	if tooFew*100 > mixes*worseMixes || more*100 > ordered*worseNodes || tooMany*100 > mixes*betterMixes {
		t.Error("the count is too far from what Nomad needs")
	}
	t.Logf("%d mixes from seed %d: %d nodes ordered, %d more in %d mixes; one less was enough in %d", mixes, first, ordered, more, tooFew, tooMany)
}
