// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestAPoolGrowsAndShrinksWithItsPolicy(t *testing.T) {
	growAndShrink(t, harness.Start(t))
}

func growAndShrink(t *testing.T, s *harness.Stack) {
	t.Helper()
	s.DrainDeadline = 12 * time.Second // the batch job runs past any
	watch := s.StartPrometheus(t)
	agent := s.StartAgent(t)
	watch.AwaitPool(t)

	t.Log("from nothing to three")
	s.Reach(t, 2*time.Minute, 3)
	checkMachines(t, s, 3)
	deploy(t, s)
	checkMetricNames(t, s)

	t.Log("an outage of the metrics")
	s.Metrics.Fail()
	s.StaysSettled(t, 3)

	t.Log("from three to one")
	departures := watchDepartures(s)
	s.Reach(t, 4*time.Minute, 1)
	departures.check(t, 2)
	awaitRuns(t, s, "web", 3)

	t.Log("from one to nothing")
	s.Reach(t, 3*time.Minute, 0)
	departures.check(t, 3)

	checkLog(t, agent, 3)
	checkRequests(t, s)
	agent.StopInOrder(t)
	if holders := s.LeaseHolders(t); len(holders) > 0 {
		t.Errorf("after its end the plugin holds a Lease as %v", holders)
	}
	checkGarbageCollection(t, s)
	fromTemplate(t, s)
	checkRights(t, s)

	t.Log("the dashboard and the alerts")
	end := time.Now()
	recordings := record(t, s, watch, end)
	checkAlerts(t, watch, end)
	checkDashboardPage(t, watch, recordings, end)
	killPlugin(t, s, watch)
	t.Logf("took %v", time.Since(end).Round(100*time.Millisecond))
}

// fromTemplate makes a VM from a version of a template, with the policy's user data.
func fromTemplate(t *testing.T, s *harness.Stack) {
	t.Helper()
	t.Log("one from a template")
	s.Template = "default/worker:1"
	s.Metrics.Want(1)
	agent := s.StartAgent(t)
	s.AwaitSettled(t, 2*time.Minute, 1)
	vm := s.VMs(t)[0]
	guest := vm.Obj("spec", "template", "spec")
	if memory := guest.Str("domain", "resources", "limits", "memory"); memory != "4Gi" {
		t.Errorf("%s has the limit %q of memory, want the template's 4Gi", vm.Name(), memory)
	}
	if len(guest.Obj("nodeSelector")) > 0 || guest.At("affinity", "nodeAffinity") == nil {
		t.Errorf("%s has the template's node selector, want node affinity: %v", vm.Name(), guest.At("affinity"))
	}
	for _, text := range []string{"52:54:00:12:34:56", "worker-disk-", "6f1c1a52", "templateversion-"} {
		if strings.Contains(fmt.Sprint(vm), text) {
			t.Errorf("%s has %s, which is not a pool's", vm.Name(), text)
		}
	}
	for _, text := range []string{"vmdp", "reservedMemory"} {
		if !strings.Contains(fmt.Sprint(vm), text) {
			t.Errorf("%s lacks the template's %s", vm.Name(), text)
		}
	}
	s.Reach(t, 3*time.Minute, 0)
	agent.StopInOrder(t)
}

func TestAScaleInSurvivesTheDeathOfPluginAndAgent(t *testing.T) {
	s := harness.Start(t)
	s.Introduction = "auto" // this Nomad has no tokens
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 3)
	checkNotIntroduced(t, s, agent)
	deploy(t, s)

	departures := watchDepartures(s)
	s.Metrics.Want(1)
	harness.Eventually(t, time.Minute, "a marked VM's node drains", func() error { return drainHasBegun(s) })
	agent.KillBoth(t)
	if left := len(s.VMs(t)); left != 3 {
		t.Fatalf("%d VMs when the drain had just begun, want 3", left)
	}

	s.StartAgent(t)
	s.AwaitSettled(t, 4*time.Minute, 1)
	departures.check(t, 2)
	checkRequests(t, s)
}

// Four changes of the count. In each, plugin and agent are killed at a random
// moment, and Nomad's server, the API server, or both fail.
func TestEveryChangeSurvivesKillsAndRestartsOfNomadAndTheAPIServer(t *testing.T) {
	s := harness.StartAlone(t)
	agent := s.StartAgent(t)
	random := rand.New(rand.NewSource(1))
	departures := watchDepartures(s)
	gone := 0
	for i, change := range []struct {
		count    int
		restarts []*harness.Process
	}{
		{3, nil},
		{1, []*harness.Process{s.NomadServer}},
		{3, []*harness.Process{s.APIServer}},
		{0, []*harness.Process{s.APIServer, s.NomadServer}},
	} {
		before := len(s.VMs(t))
		t.Logf("from %d to %d", before, change.count)
		s.Metrics.Want(change.count)
		harness.Eventually(t, time.Minute, "the change has begun", func() error { return begun(s, before, change.count) })
		time.Sleep(time.Duration(random.Int63n(int64(6 * time.Second)))) // the moment of the kill
		agent.KillBoth(t)
		for _, server := range change.restarts {
			server.Restart(t)
		}
		agent = s.StartAgent(t)
		s.AwaitSettled(t, 5*time.Minute, change.count)
		if i == 0 {
			useCommands(t, s)
			deploy(t, s)
		}
		gone += max(0, before-change.count)
	}
	departures.check(t, gone)
}

// begun returns nil once there are not as many VMs as before, or one of them is on its way out.
func begun(s *harness.Stack, before, wanted int) error {
	vms, err := s.Kube.List(harness.VirtualMachines, s.Namespace, "")
	switch {
	case err != nil || len(vms) != before:
		return err
	case wanted < before:
		return drainHasBegun(s)
	}
	return errors.New("no VM is new")
}

// deploy runs jobs on three nodes and waits until all allocations run.
func deploy(t *testing.T, s *harness.Stack) {
	t.Helper()
	for _, job := range []harness.Object{serviceJob(), systemJob(), batchJob()} {
		s.Nomad.Run(t, job)
	}
	harness.Eventually(t, time.Minute, "each node has a service, a system and a batch allocation", func() error {
		for _, job := range []string{"web", "monitor", "crunch"} {
			running, err := s.Nomad.RunningOn(job)
			if err != nil {
				return err
			}
			if len(running) != 3 {
				return fmt.Errorf("%s runs on %v", job, running)
			}
		}
		return nil
	})
}

// drainHasBegun returns nil once the node of a marked VM is being drained, or has been: that of a node with nothing but a
// system job takes a tenth of a second, less than one look of a slow machine.
func drainHasBegun(s *harness.Stack) error {
	vms, err := s.Kube.List(harness.VirtualMachines, s.Namespace, "")
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if vm.Annotation(harness.MarkAnnotation) == "" {
			continue
		}
		node, err := s.Nomad.Node(vm.Name())
		if err != nil {
			return err
		}
		if vm.Terminating() || node.At("LastDrain") != nil {
			return nil
		}
	}
	return errors.New("no drain of a marked VM's node has begun")
}

// departures records the observations at the plugin's DELETE of VMs.
type departures struct {
	stack *harness.Stack
	// Whether a VM may go before the service's next allocation runs, which Nomad does not promise.
	serviceMayPause bool

	lock     sync.Mutex
	names    []string
	problems []string
}

// watchDepartures examines the node of each VM at the moment of its DELETE,
// before the API server receives it.
func watchDepartures(s *harness.Stack) *departures {
	d := &departures{stack: s}
	collection := harness.VirtualMachines.Path(s.Namespace) + "/"
	s.FrontDoor.Before(func(r *http.Request) {
		name, isVM := strings.CutPrefix(r.URL.Path, collection)
		if r.Method != http.MethodDelete || !isVM {
			return
		}
		problem := d.examine(name)
		for isOutage(problem) && r.Context().Err() == nil { // it will say the same once it is back
			time.Sleep(100 * time.Millisecond)
			problem = d.examine(name)
		}
		d.lock.Lock()
		defer d.lock.Unlock()
		d.names = append(d.names, name)
		if problem != nil {
			d.problems = append(d.problems, fmt.Sprintf("%s: %v", name, problem))
		}
	})
	return d
}

// isOutage returns whether Nomad's server does not answer: it was killed after the plugin had asked it.
func isOutage(problem error) bool {
	var refused *harness.APIError
	var noReply *url.Error
	return errors.As(problem, &noReply) || (errors.As(problem, &refused) && refused.Code >= http.StatusInternalServerError)
}

// examine returns an error if the VM must not be removed now.
func (d *departures) examine(name string) error {
	vm, err := d.stack.Kube.Get(harness.VirtualMachines, d.stack.Namespace, name)
	if refused := new(harness.APIError); err != nil && !errors.As(err, &refused) {
		return nil // the API server is down, so nothing is removed
	}
	if err != nil {
		return err
	}
	if vm.Annotation(harness.MarkAnnotation) == "" {
		return errors.New("it is not marked")
	}
	node, err := d.stack.Nomad.Node(name)
	if err != nil {
		return err
	}
	if status := node.Str("LastDrain", "Status"); status != "complete" {
		return fmt.Errorf("its node's last drain is %q", status)
	}
	allocations, err := d.stack.Nomad.List("/v1/node/" + node.Str("ID") + "/allocations")
	if err != nil {
		return err
	}
	for _, allocation := range allocations {
		if status := allocation.Str("ClientStatus"); status == "pending" || status == "running" {
			return fmt.Errorf("an allocation of %s is %s", allocation.Str("JobID"), status)
		}
		for task := range allocation.Obj("TaskStates") {
			if state := allocation.Str("TaskStates", task, "State"); state != "dead" {
				return fmt.Errorf("task %s of %s is %s", task, allocation.Str("JobID"), state)
			}
		}
		if allocation.Str("JobID") == "crunch" && !hasStarted(allocation, "cleanup") {
			return errors.New("the batch job never cleaned up")
		}
	}
	if d.serviceMayPause {
		return nil
	}
	return d.examineService(node.Str("ID"), allocations)
}

// examineService returns an error for a service allocation of the node without a
// running replacement, if another node could run one.
func (d *departures) examineService(node string, allocations []harness.Object) error {
	nodes, err := d.stack.Nomad.List("/v1/nodes")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(nodes, func(n harness.Object) bool { return n.Str("SchedulingEligibility") == "eligible" }) {
		return nil
	}
	all, err := d.stack.Nomad.Allocations("web")
	if err != nil {
		return err
	}
	for _, allocation := range allocations {
		if allocation.Str("JobID") != "web" {
			continue
		}
		if !slices.ContainsFunc(all, func(next harness.Object) bool {
			// A replacement has the name of what it replaces.
			return next.Str("Name") == allocation.Str("Name") && next.Int("CreateIndex") > allocation.Int("CreateIndex") &&
				next.Str("NodeID") != node && hasStarted(next, "web")
		}) {
			return fmt.Errorf("nothing stands in for service allocation %s", allocation.Str("ID"))
		}
	}
	return nil
}

// hasStarted returns whether a task has ever run; if not, Nomad writes Go's zero time.
func hasStarted(allocation harness.Object, task string) bool {
	started := allocation.Str("TaskStates", task, "StartedAt")
	return started != "" && !strings.HasPrefix(started, "0001-")
}

func (d *departures) check(t *testing.T, want int) {
	t.Helper()
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, problem := range d.problems {
		t.Errorf("removed too early: %s", problem)
	}
	gone := map[string]bool{}
	for _, name := range d.names {
		gone[name] = true
	}
	if len(gone) != want {
		t.Errorf("%d VMs were told to go (%v), want %d", len(gone), d.names, want)
	}
}

// checkLog checks the plugin's lines in the agent's log, of so many changes of the count.
func checkLog(t *testing.T, agent *harness.Agent, changes int) {
	t.Helper()
	levels := map[string]int{}
	actions := map[string]bool{}
	for _, line := range agent.PluginLines(t) {
		levels[line.Str("@level")]++
		if strings.HasPrefix(line.Str("@message"), "{") {
			t.Errorf("a line of the plugin was not understood: %s", line.Str("@message"))
		}
		if id := line.Str("action_id"); id != "" && line.Str("@level") == "info" {
			actions[id] = true
		}
	}
	if levels["info"] == 0 || levels["debug"] == 0 {
		t.Errorf("lines by level: %v, want some at info and debug", levels)
	}
	if levels["error"] > 0 {
		t.Errorf("lines by level: %v, want no errors", levels)
	}
	if len(actions) < changes {
		t.Errorf("INFO lines name %d actions, want one for each change of the count", len(actions))
	}
}

// checkRequests checks how the API server handled the plugin's requests: all
// writes passed strict validation, and the Role covers all requests.
func checkRequests(t *testing.T, s *harness.Stack) {
	t.Helper()
	invalid := map[string]int{}
	for _, request := range s.FrontDoor.Requests() {
		if request.Code == http.StatusBadRequest || request.Code == http.StatusUnprocessableEntity {
			invalid[fmt.Sprintf("%s %s: %d", request.Method, request.URL, request.Code)]++
		}
	}
	for what, times := range invalid {
		t.Errorf("invalid %d times: %s", times, what)
	}
	checkRefusals(t, s)
}

// checkRefusals: the Roles of examples/rbac.yaml cover what was asked for.
func checkRefusals(t *testing.T, s *harness.Stack) {
	t.Helper()
	_, refused := s.Asked(t)
	for right, times := range refused {
		// A Role cannot grant cluster-scoped resources: the plugin may request
		// them and treats the result as unknown.
		if right.Namespace != "" {
			t.Errorf("refused %d times: %v", times, right)
		}
	}
}
