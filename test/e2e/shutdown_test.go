// SPDX-License-Identifier: Apache-2.0

// Pools whose Nomad speaks TLS only, and whose machines drain themselves (examples/cloud-init-tls.yaml).

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestAMachineThatShutsDownDrainsItselfAndIsLeftAloneUntilThen(t *testing.T) {
	s := harness.StartWith(t, harness.NomadOptions{TLS: true})
	s.DrainOnShutdown, s.DrainDeadline = 8*time.Second, 5*time.Second
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 2)
	checkTLS(t, s)
	s.Nomad.Run(t, endlessBatchJob())
	awaitRunning(t, s, "endless", 2)

	t.Log("one is interrupted, as the package's unit stops Nomad; the batch job runs until the deadline")
	machine := s.Machines.Running()[0]
	must(t, machine.Interrupt())
	awaitNode(t, s, machine.Name, func(node harness.Object) error {
		if !node.Bool("Drain") || node.Str("LastDrain", "Meta", "message") != "shutting down" {
			return fmt.Errorf("its last drain is %v; Nomad 1.11.0 refuses it (hashicorp/nomad#27104)", node.At("LastDrain"))
		}
		return nil
	})
	s.Metrics.Want(1) // the node with the least work is this one
	awaitLine(t, agent.Log, "Not ready", "is draining")
	s.Metrics.Want(2)
	harness.Eventually(t, 30*time.Second, "the machine ends once its drain has", func() error {
		must(t, untouched(s))
		if machine.Running() {
			return errors.New("it runs")
		}
		return nil
	})

	t.Log("it boots again, and takes no work until somebody enables its node")
	back := awaitNode(t, s, machine.Name, func(node harness.Object) error {
		if node.Str("Status") != "ready" || len(s.Machines.Running()) != 2 {
			return fmt.Errorf("it is %s", node.Str("Status"))
		}
		if node.Str("LastDrain", "Status") != "complete" {
			return fmt.Errorf("its last drain is %v", node.At("LastDrain"))
		}
		return nil
	})
	if back.Str("SchedulingEligibility") != "ineligible" {
		t.Errorf("after the boot it is %s", back.Str("SchedulingEligibility"))
	}
	if err := untouched(s); err != nil {
		t.Error(err)
	}
	must1(s.Nomad.Do(http.MethodPost, "/v1/node/"+back.Str("ID")+"/eligibility", harness.Object{"Eligibility": "eligible"}))(t)
	s.AwaitSettled(t, time.Minute, 2)

	// Nomad may place what waits on the node that was enabled while its drain begins: no drain stops that.
	must1(s.Nomad.Do(http.MethodDelete, "/v1/job/endless", nil))(t)
	awaitRunning(t, s, "endless", 0)
	t.Log("machines that the plugin removes drain themselves once more, which hides its drain from node_purge")
	departures := watchDepartures(s)
	s.Metrics.Want(0)
	for _, id := range awaitNodesWithoutVMs(t, s, 2) {
		if _, err := s.Nomad.Do(http.MethodPost, "/v1/node/"+id+"/purge", nil); err != nil {
			t.Error(err)
		}
	}
	s.AwaitSettled(t, time.Minute, 0)
	departures.check(t, 2)
	checkRequests(t, s)
}

// awaitNodesWithoutVMs waits until no VM is left, and the nodes are down; returns the nodes' ids.
func awaitNodesWithoutVMs(t *testing.T, s *harness.Stack, count int) (ids []string) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, "no VM is left, and their nodes are down", func() error {
		vms, err := s.Kube.List(harness.VirtualMachines, s.Namespace, "")
		if err != nil || len(vms) > 0 {
			return fmt.Errorf("%d VMs: %v", len(vms), err)
		}
		nodes, err := s.Nomad.List("/v1/nodes")
		ids = nil
		for _, node := range nodes {
			if node.Str("Status") != "down" || node.Str("LastDrain", "Meta", "message") != "shutting down" {
				return fmt.Errorf("node %s is %s, its last drain %v", node.Str("Name"), node.Str("Status"), node.At("LastDrain"))
			}
			ids = append(ids, node.Str("ID"))
		}
		return err
	})
	if len(ids) != count {
		t.Errorf("%d nodes are left, want %d", len(ids), count)
	}
	return ids
}

// checkTLS: the machines speak TLS, as their cloud-init says; one without it does not get in. They
// know the CNI plugins.
func checkTLS(t *testing.T, s *harness.Stack) {
	t.Helper()
	plain := must1(s.Machines.Boot("plain", "plain", machineFiles(nil)))(t)
	defer plain.Kill()
	for _, machine := range s.Machines.Running() {
		if machine == plain {
			continue
		}
		if err := s.Machines.Validate(machine); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(filepath.Join(machine.Config, "client-key.pem")); err != nil || info.Size() < 100 {
			t.Errorf("the key of %s: %v", machine.Name, err)
		}
		awaitNode(t, s, machine.Name, func(node harness.Object) error {
			if !node.Bool("TLSEnabled") || node.Str("Attributes", "plugins.cni.version.bridge") == "" {
				return fmt.Errorf("TLS %v, %v", node.At("TLSEnabled"), node.At("Attributes"))
			}
			return nil
		})
	}
	harness.Eventually(t, 30*time.Second, "the server refuses a client without TLS", func() error {
		log, err := os.ReadFile(s.NomadServer.Log)
		if err == nil && !strings.Contains(string(log), "non-TLS connection attempted") {
			err = errors.New("it has not said so")
		}
		return err
	})
	if node, err := s.Nomad.Node("plain"); node != nil || err != nil {
		t.Errorf("a client without TLS got in: %v %v", node, err)
	}
}

// endlessBatchJob has an allocation on each of two nodes; no drain ends before its deadline.
func endlessBatchJob() harness.Object {
	return job("endless", "batch", harness.Object{
		"Count":            2,
		"Constraints":      []harness.Object{{"Operand": "distinct_hosts", "RTarget": "true"}},
		"ReschedulePolicy": harness.Object{"Attempts": 0, "Unlimited": false},
		"Tasks":            []harness.Object{task("endless", harness.Object{"run_for": "24h"})},
	})
}

func awaitRunning(t *testing.T, s *harness.Stack, job string, nodes int) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("%s runs on %d nodes", job, nodes), func() error {
		running, err := s.Nomad.RunningOn(job)
		if err == nil && len(running) != nodes {
			err = fmt.Errorf("it runs on %v", running)
		}
		return err
	})
}

// awaitNode waits for the node of that name, which is not down, to be as it should, and returns it.
func awaitNode(t *testing.T, s *harness.Stack, name string, check func(harness.Object) error) (found harness.Object) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the node "+name, func() (err error) {
		if found, err = s.Nomad.Node(name); err == nil && found == nil {
			err = errors.New("none is up")
		}
		if err == nil {
			err = check(found)
		}
		return err
	})
	return found
}

// untouched: no VM is marked or deleted.
func untouched(s *harness.Stack) error {
	vms, err := s.Kube.List(harness.VirtualMachines, s.Namespace, "")
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if vm.Annotation(harness.MarkAnnotation) != "" || vm.Terminating() {
			return fmt.Errorf("%s was chosen, though its node was draining: %v", vm.Name(), vm.At("metadata"))
		}
	}
	return nil
}
