// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// spreadJob is the example, which spreads its allocations over physical hosts by what
// the plugin publishes, with another task.
func spreadJob(t *testing.T, s *harness.Stack, id string, count int) harness.Object {
	t.Helper()
	text := must1(os.ReadFile(filepath.Join(harness.Root, "examples", "spread.nomad.hcl")))(t)
	job, err := s.Nomad.Do(http.MethodPost, "/v1/jobs/parse", harness.Object{"JobHCL": string(text)})
	if err != nil {
		t.Fatalf("examples/spread.nomad.hcl: %v", err)
	}
	group := job.List("TaskGroups")[0]
	group["Count"] = count
	group["Tasks"] = []harness.Object{task(id, harness.Object{"run_for": "24h"})}
	job["ID"], job["Name"], job["TaskGroups"] = id, id, []harness.Object{group}
	return job
}

// mayListHosts grants the optional right to read Harvester's hosts, as the comment in examples/rbac.yaml does.
func mayListHosts(t *testing.T, s *harness.Stack) {
	t.Helper()
	name := "nomad-harvester-autoscaler-" + s.Namespace
	if err := s.Kube.Apply([]harness.Object{
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": harness.Object{"name": name},
			"rules": []harness.Object{{"apiGroups": []string{""}, "resources": []string{"nodes"}, "verbs": []string{"get", "list"}}},
		},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": harness.Object{"name": name},
			"roleRef":  harness.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
			"subjects": []harness.Object{{"kind": "ServiceAccount", "name": "nomad-harvester-autoscaler", "namespace": s.Namespace}},
		},
	}); err != nil {
		t.Fatal(err)
	}
}

// published returns the host that each node says, by the node's name. An error: one
// differs from where its VM's instance runs.
func published(s *harness.Stack) (map[string]string, error) {
	instances, err := s.Kube.List(harness.Instances, s.Namespace, "")
	if err != nil {
		return nil, err
	}
	hosts := map[string]string{}
	for _, instance := range instances {
		node, err := s.Nomad.Node(instance.Name())
		if err != nil {
			return nil, err
		}
		host := instance.Str("status", "nodeName")
		if said := node.Str("Meta", "harvester_host"); host == "" || said != host {
			return nil, fmt.Errorf("node %s says host %q, and its VM runs on %q", instance.Name(), said, host)
		}
		if said := node.Str("Meta", "harvester_zone"); said != harness.ZoneOf(host) {
			return nil, fmt.Errorf("node %s on host %s says zone %q", instance.Name(), host, said)
		}
		hosts[instance.Name()] = host
	}
	if len(hosts) == 0 {
		return nil, errors.New("no instances")
	}
	return hosts, nil
}

// spread waits until two allocations of the job run on two hosts.
func spread(t *testing.T, s *harness.Stack, id string, hosts map[string]string) {
	t.Helper()
	harness.Eventually(t, time.Minute, "job "+id+" runs on two hosts", func() error {
		running, err := s.Nomad.RunningOn(id)
		if err != nil {
			return err
		}
		on := map[string]int{}
		for node, count := range running {
			on[hosts[node]] += count
		}
		if len(on) != 2 || on[""] > 0 {
			return fmt.Errorf("allocations by host: %v", on)
		}
		return nil
	})
}

func TestJobsSpreadOverTheHostsThatThePluginPublishes(t *testing.T) {
	s := harness.Start(t)
	mayListHosts(t, s)
	s.PolicyKeys = map[string]string{"publish_host": "true"}
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 3)

	t.Log("after the join")
	var hosts map[string]string
	harness.Eventually(t, time.Minute, "each node says on which host its VM runs", func() (err error) {
		hosts, err = published(s)
		return err
	})
	s.Nomad.Run(t, spreadJob(t, s, "before", 2))
	spread(t, s, "before", hosts)

	t.Log("a live migration")
	moved := slices.Sorted(maps.Keys(hosts))[0]
	left := hosts[moved]
	s.Migrate(t, moved)
	harness.Eventually(t, 3*time.Minute, "the metadata follows", func() (err error) {
		if hosts, err = published(s); err == nil && hosts[moved] == left {
			err = fmt.Errorf("%s is on %s still", moved, left)
		}
		return err
	})
	s.Nomad.Run(t, spreadJob(t, s, "after", 2))
	spread(t, s, "after", hosts)
	s.StaysSettled(t, 3)

	t.Log("without the key")
	agent.StopInOrder(t)
	s.PolicyKeys = nil
	s.StartAgent(t)
	harness.Eventually(t, time.Minute, "no node says a host", func() error {
		for name := range hosts {
			node, err := s.Nomad.Node(name)
			if err != nil {
				return err
			}
			if said := node.Str("Meta", "harvester_host"); said != "" {
				return fmt.Errorf("node %s says host %q", name, said)
			}
		}
		return nil
	})
	checkRequests(t, s)
}
