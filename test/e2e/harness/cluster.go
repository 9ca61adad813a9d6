// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Cluster is a Harvester cluster: the programs of Harvester, KubeVirt and Kubernetes, and players of what needs
// a machine. A run has two at most, each started when the first test needs it and stopped by Run: one that tests
// share, and one whose programs a test may kill. Each test has a namespace of its own.
type Cluster struct {
	Certificates *Certificates
	Kube         *Kube // as administrator

	// Processes that a test of StartAlone may kill and restart.
	APIServer, VirtAPI, VirtController, HarvesterWebhook, HarvesterServer *Process

	release         release
	dir             string
	etcd            string
	steve           string // URL of Harvester's own API
	players         *players
	kubevirtObjects []Object // webhook configurations and APIServices
	namespaces      atomic.Int32
}

// Host returns the name of the n-th physical host, from 0.
func Host(n int) string { return fmt.Sprintf("harvester-node-%d", n) }

// mostNamespaces is how many tests of one run can use a cluster.
const mostNamespaces = 40

func namespaceName(n int) string { return fmt.Sprintf("nomad-%d", n) }

// once starts a cluster at the first call. A start that fails is tried once more, for the next test.
type once struct {
	lock    sync.Mutex
	starts  int
	cluster *Cluster
}

var (
	shared, alone once
	// turns lets one test at a time have the cluster of StartAlone.
	turns = make(chan struct{}, 1)
)

func (o *once) get(t testing.TB) *Cluster {
	t.Helper()
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.cluster == nil && o.starts < 2 {
		o.starts++
		o.cluster = startCluster(lasting{t})
	}
	if o.cluster == nil {
		t.Fatal("the cluster did not start in two earlier tests")
	}
	return o.cluster
}

func startCluster(t testing.TB) *Cluster {
	t.Helper()
	began := time.Now()
	dir := temporaryDir(t)
	r, known := releases[os.Getenv("NOMAD_HARVESTER_E2E_HARVESTER")]
	if !known {
		t.Fatal("NOMAD_HARVESTER_E2E_HARVESTER is none of the releases that the tests know, such as 1.6")
	}
	c := &Cluster{release: r, dir: dir, Certificates: newCertificates(t, dir)}
	c.etcd = startEtcd(t, dir)
	c.Kube, c.APIServer = startAPIServer(t, dir, c.etcd, c.Certificates)
	c.applyDefinitions(t)
	objects := testdata("harvester-objects.yaml")
	check(t, objects, c.Kube.Apply(must[[]Object](t, objects)(readYAML(objects))))
	c.startHarvester(t)
	t.Logf("a Harvester cluster is up after %v", time.Since(began).Round(100*time.Millisecond))
	return c
}

// addNamespace makes a namespace with the rights of examples/rbac.yaml for a ServiceAccount of it; returns
// its name.
func (c *Cluster) addNamespace(t testing.TB) string {
	t.Helper()
	number := int(c.namespaces.Add(1))
	name := namespaceName(number)
	if number > mostNamespaces {
		t.Fatalf("more than %d tests use the cluster: raise mostNamespaces", mostNamespaces)
	}
	objects := []Object{{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": name}}}
	check(t, "namespace "+name, c.Kube.Apply(append(objects, rights(t, name)...)))
	return name
}

// rights returns the objects of examples/rbac.yaml, whose namespace of VMs is "nomad", for another one.
func rights(t testing.TB, namespace string) []Object {
	t.Helper()
	objects := must[[]Object](t, rbacFile)(readYAML(rbacFile))
	for _, object := range objects {
		metadata := object.Obj("metadata")
		if metadata.Str("namespace") == "nomad" {
			metadata["namespace"] = namespace
		} else { // that of images, where other tests have theirs
			metadata["name"] = metadata.Str("name") + "-" + namespace
			if role := object.Obj("roleRef"); role != nil {
				role["name"] = metadata.Str("name")
			}
		}
		for _, subject := range object.List("subjects") {
			subject["namespace"] = namespace
		}
	}
	return objects
}

var rbacFile = filepath.Join(Root, "examples", "rbac.yaml")

// mend gives the next test a cluster whose programs and hosts are up.
func (c *Cluster) mend(t testing.TB) {
	t.Helper()
	for _, host := range HostNames() {
		c.SetHostDown(host, false)
	}
	if !c.APIServer.Running() {
		c.APIServer.Restart(t)
	}
	c.awaitPrograms(t, "KubeVirt and Harvester admit a VM", func() error { return admitted(c.Kube) })
	Eventually(t, 3*time.Minute, "the hosts are ready, and nothing keeps VMs off them", func() error {
		for _, host := range HostNames() {
			if err := c.openHost(host); err != nil {
				return err
			}
		}
		return nil
	})
}

// openHost ends cordon, maintenance mode and taints of a host, as an operator does; nil: there are none.
func (c *Cluster) openHost(name string) error {
	host, err := c.Kube.Get(Hosts, "", name)
	switch {
	case err != nil:
		return err
	case !HasCondition(host, "Ready"):
		return fmt.Errorf("%s is not ready", name)
	case !host.Bool("spec", "unschedulable") && len(host.List("spec", "taints")) == 0:
		return nil
	}
	annotations := Object{}
	for _, key := range []string{"harvesterhci.io/drain-requested", "harvesterhci.io/drain-forced", "harvesterhci.io/maintain-status"} {
		annotations[key] = nil
	}
	_, err = c.Kube.Patch(Hosts, "", name, Object{
		"metadata": Object{"annotations": annotations}, "spec": Object{"unschedulable": nil, "taints": nil},
	})
	return errors.Join(err, fmt.Errorf("%s was closed", name))
}

// showLogs shows the ends of the cluster's logs if the test failed.
func (c *Cluster) showLogs(t testing.TB) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, process := range []*Process{c.APIServer, c.VirtAPI, c.VirtController, c.HarvesterWebhook, c.HarvesterServer} {
		t.Logf("end of %s's log:\n%s", process.Name, tail(process.Log, 20))
	}
	t.Logf("end of the players' log:\n%s", tail(filepath.Join(c.dir, "players.log"), 60))
}

// lasting is a test that starts what outlives it.
type lasting struct{ testing.TB }

// Cleanup is done by Run.
func (lasting) Cleanup(f func()) {
	cleanupLock.Lock()
	defer cleanupLock.Unlock()
	cleanups = append(cleanups, f)
}

// Logf does not need the test, which may have ended.
func (lasting) Logf(format string, values ...any) { fmt.Printf(format+"\n", values...) }

// Errorf neither.
func (lasting) Errorf(format string, values ...any) { fmt.Printf(format+"\n", values...) }

// Failed is false: each test that fails shows the logs itself.
func (lasting) Failed() bool { return false }

var (
	cleanupLock sync.Mutex
	cleanups    []func()
)

// Run runs the tests of a package and then stops the clusters.
func Run(m *testing.M) int {
	defer func() {
		for len(cleanups) > 0 {
			last := len(cleanups) - 1
			f := cleanups[last]
			cleanups = cleanups[:last]
			f()
		}
	}()
	return m.Run()
}
