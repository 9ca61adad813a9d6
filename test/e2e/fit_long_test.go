// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Nomad places evaluations side by side. One whose plan has failed too often because of the others is
// blocked, too, and is tried again within a minute (hashicorp/nomad:nomad/leader.go,
// failedEvalUnblockInterval).
const fitConflicts = 100 * time.Second

// How many scale-ins are tried, and the seed of the first mix; NOMAD_HARVESTER_FIT_SCALE_INS and
// NOMAD_HARVESTER_FIT_SEED try others.
const (
	fitScaleIns = 1000
	fitSeed     = 1
	fitPerMix   = 3 // scale-ins, one after the other
)

// queued returns how many allocations of each job of the mix wait.
func (m *demandMix) queued() map[string]int64 {
	m.t.Helper()
	jobs := must1(m.nomad.List("/v1/jobs?namespace=*"))(m.t)
	queued := map[string]int64{}
	for _, job := range jobs {
		if id := job.Str("ID"); slices.Contains(m.jobs, id) {
			queued[id] = job.Int("JobSummary", "Summary", "g", "Queued")
		}
	}
	return queued
}

// nodesThatAre returns the IDs of the mix's nodes with this eligibility, sorted.
func (m *demandMix) nodesThatAre(eligibility string) (ids []string) {
	m.t.Helper()
	nodes := must1(m.nomad.List("/v1/nodes"))(m.t)
	for _, node := range nodes {
		if node.Str("Datacenter") == m.name && node.Str("SchedulingEligibility") == eligibility {
			ids = append(ids, node.Str("ID"))
		}
	}
	slices.Sort(ids)
	return ids
}

// standing returns the IDs of the mix's nodes that take work, in a random order.
func (m *demandMix) standing() []string {
	m.t.Helper()
	ids := m.nodesThatAre("eligible")
	m.rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// fitting returns those of the nodes that a scale-in with scale_in_fit = "require" may drain.
func (m *demandMix) fitting(ids []string) []string {
	m.t.Helper()
	drained := m.nodesThatAre("ineligible")
	arguments := slices.Concat([]string{m.nomad.URL, m.name, fmt.Sprint(len(drained))}, drained, ids)
	cmd := exec.Command(os.Getenv("HARVESTER_DEMAND_FIT"), arguments...)
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(lines) != len(ids) {
		m.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	var fitting []string
	for i, line := range lines {
		if line == "" {
			fitting = append(fitting, ids[i])
		}
	}
	return fitting
}

// busy returns on how many of the nodes work has to move.
func (m *demandMix) busy(ids []string) (busy int64) {
	m.t.Helper()
	for _, id := range ids {
		allocations := must1(m.nomad.List("/v1/node/" + id + "/allocations"))(m.t)
		if slices.ContainsFunc(allocations, func(a harness.Object) bool { return a.Str("DesiredStatus") == "run" }) {
			busy++
		}
	}
	return busy
}

// moved waits until nothing runs on the drained nodes: the drainer waits for a second before it begins
// (hashicorp/nomad:nomad/drainer/drainer.go, BatchUpdateInterval).
func (m *demandMix) moved(ids []string) {
	m.t.Helper()
	harness.Eventually(m.t, 2*time.Minute, "the work of the drained nodes moves", func() error {
		if busy := m.busy(ids); busy > 0 {
			return fmt.Errorf("%d of %v have work that runs", busy, ids)
		}
		return nil
	})
}

// triedAgain waits until Nomad has tried all work of the mix again whose plans it refused. Such an
// evaluation stays as it is if the work has no place then.
func (m *demandMix) triedAgain() {
	m.t.Helper()
	harness.Eventually(m.t, 2*fitConflicts, "Nomad tries refused plans again", func() error {
		evaluations, err := m.nomad.List("/v1/evaluations?status=blocked&namespace=*")
		if err != nil {
			return err
		}
		for _, evaluation := range evaluations {
			job, age := evaluation.Str("JobID"), time.Since(time.Unix(0, evaluation.Int("CreateTime")))
			if evaluation.Str("TriggeredBy") == "max-plan-attempts" && slices.Contains(m.jobs, job) && age < fitConflicts {
				return fmt.Errorf("the plans of %s were refused %v ago", job, age)
			}
		}
		return nil
	})
}

// left returns what waits, and did not before.
func (m *demandMix) left(before map[string]int64) (left []string) {
	m.t.Helper()
	for job, count := range m.queued() {
		if count > before[job] {
			left = append(left, fmt.Sprintf("%d allocations of %s wait, %d did before", count, job, before[job]))
		}
	}
	for job := range m.waiting() {
		if before[job] == 0 {
			left = append(left, fmt.Sprintf("%s has a blocked evaluation: %s", job, m.failures(job)))
		}
	}
	return left
}

// failures returns why Nomad has no place for the job, and what the job asks for.
func (m *demandMix) failures(job string) string {
	m.t.Helper()
	evaluations := must1(m.nomad.List("/v1/evaluations?status=blocked&namespace=*"))(m.t)
	asks, err := m.nomad.Get("/v1/job/" + job)
	if err != nil {
		m.t.Fatal(err)
	}
	text := fmt.Sprintf("it asks for %v", asks["TaskGroups"])
	for _, evaluation := range evaluations {
		if evaluation.Str("JobID") == job {
			text += fmt.Sprintf("; %v", evaluation["FailedTGAllocs"])
		}
	}
	return text
}

// lost returns the names of nodes that Nomad has not heard of in time, on a machine with much else to
// do, and of work that was on such a node. Nomad moves it by itself.
func (m *demandMix) lost() (names []string) {
	m.t.Helper()
	nodes := must1(m.nomad.List("/v1/nodes"))(m.t)
	for _, node := range nodes {
		if node.Str("Datacenter") == m.name && node.Str("Status") != "ready" {
			names = append(names, node.Str("Name"))
		}
	}
	allocations := must1(m.nomad.List("/v1/allocations?namespace=*"))(m.t)
	for _, allocation := range allocations {
		if slices.Contains(m.jobs, allocation.Str("JobID")) && allocation.Str("ClientStatus") == "lost" {
			names = append(names, allocation.Str("Name"))
		}
	}
	return names
}

// scaleIn drains what fits of random nodes. It returns how many nodes with work fitted, and how many
// did not; false: a node was lost meanwhile, which says nothing.
func (m *demandMix) scaleIn() (drained, passed int64, ok bool) {
	m.t.Helper()
	m.triedAgain()
	before := m.queued()
	ids := m.standing()
	ids = ids[:min(len(ids), 1+m.rand.Intn(2))]
	if len(ids) == 0 {
		return 0, 0, true
	}
	chosen := m.fitting(ids)
	drained = m.busy(chosen)
	passed = m.busy(ids) - drained
	for _, id := range chosen {
		// At once, so that all work moves although none of it is ever healthy here.
		spec := harness.Object{"DrainSpec": harness.Object{"Deadline": -1}}
		must1(m.nomad.Do("POST", "/v1/node/"+id+"/drain", spec))(m.t)
	}
	m.moved(chosen)
	m.settle(200 * time.Millisecond)
	for begun := time.Now(); ; time.Sleep(time.Second) {
		left := m.left(before)
		if len(left) == 0 {
			return drained, passed, true
		}
		if lost := m.lost(); len(lost) > 0 {
			m.t.Logf("%s: %v are lost", m.name, lost)
			return 0, 0, false
		}
		if time.Since(begun) > fitConflicts {
			m.t.Errorf("%s: %v since %v of %v were drained", m.name, left, chosen, ids)
			break
		}
	}
	return drained, passed, true
}

// prepare makes a pool with work on it, some of which may wait.
func (m *demandMix) prepare() {
	m.t.Helper()
	algorithm := harness.Object{"SchedulerAlgorithm": []string{"binpack", "spread"}[m.rand.Intn(2)]}
	must1(m.nomad.Do("PUT", "/v1/operator/scheduler/configuration", algorithm))(m.t)
	m.addNodes(3 + m.rand.Int63n(8))
	for i := range 1 + m.rand.Intn(6) {
		job := m.job(fmt.Sprintf("%s-j%d", m.name, i), 1+m.rand.Intn(5), 100*(1+m.rand.Int63n(20)), 256*(1+m.rand.Int63n(10)))
		m.vary(job)
		m.nomad.Run(m.t, job)
	}
	m.settle(200 * time.Millisecond)
}

// Real Nomad says whether drained work has another place: whatever it does, no scale-in leaves a
// blocked evaluation behind.
func TestC19_no_scale_in_on_real_Nomad_leaves_a_blocked_evaluation(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{WithoutACLs: true})
	nodes := harness.StartNodes(t, s.Nomad)
	wanted := envInt(t, "NOMAD_HARVESTER_FIT_SCALE_INS", fitScaleIns)
	first := envInt(t, "NOMAD_HARVESTER_FIT_SEED", fitSeed)
	var tried, drained, passed, lost int64
	for seed := first; tried < wanted && !t.Failed(); seed++ {
		m := newMix(t, s.Nomad, nodes, "f", seed)
		m.prepare()
		for range min(fitPerMix, wanted-tried) {
			mixDrained, mixPassed, ok := m.scaleIn()
			if !ok {
				lost++
				break
			}
			drained += mixDrained
			passed += mixPassed
			tried++
		}
		m.end()
		if lost > wanted {
			t.Fatalf("%d scale-ins say nothing, because nodes were lost: the machine is too busy", lost)
		}
	}
	if drained*4 < tried {
		t.Errorf("only %d nodes with work were drained in %d scale-ins", drained, tried)
	}
	t.Logf("%d scale-ins from seed %d: %d nodes with work were drained, %d passed over", tried, first, drained, passed)
}
