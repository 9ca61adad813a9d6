// SPDX-License-Identifier: Apache-2.0

// What goes wrong in a cluster, as Kubernetes' scheduler, KubeVirt's and Harvester's own controllers tell
// it, and what the plugin makes of it.

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// How the plugin says that a VM which it has made is of no use (rule T1).
const failedCreation = "The creation of a VM has failed"

// Starts that fail, one after the other; after each the pool shrinks to nothing.
func TestAStartThatFailsIsToldInHarvestersWords(t *testing.T) {
	s := harness.Start(t)
	for i, trouble := range []struct {
		name   string
		faults harness.Faults
		keys   map[string]string
		count  int
		words  []string
	}{
		{"a launcher's image cannot be pulled", harness.Faults{ImagePull: true}, nil, 1, []string{"ImagePull", "failed to pull and unpack image"}},
		{
			"four VMs that must not share a host, on three hosts", harness.Faults{}, map[string]string{"host_spread": "required"}, 4,
			[]string{"ErrorUnschedulable", "0/3 nodes are available", "anti-affinity"},
		},
		{
			"storage is full", harness.Faults{FailClaims: true}, map[string]string{"join_timeout": "70s"}, 1,
			[]string{"ProvisioningFailed", "insufficient storage"},
		},
		{
			"containers are not created", harness.Faults{StuckPods: true}, map[string]string{"join_timeout": "30s"}, 1,
			[]string{"it has not joined Nomad by its deadline"},
		},
	} {
		t.Log(trouble.name)
		s.Fail(trouble.faults)
		// A pool of its own, so that it does not wait for the back-off of the one before.
		s.PolicyKeys = map[string]string{"node_group_name": fmt.Sprintf("pool-%d", i)}
		maps.Copy(s.PolicyKeys, trouble.keys)
		agent := s.StartAgent(t)
		began := time.Now()
		s.Metrics.Want(trouble.count)
		awaitNewLine(t, agent, append([]string{failedCreation}, trouble.words...)...)
		t.Logf("told after %v", time.Since(began).Round(time.Second))
		s.Fail(harness.Faults{})
		s.Reach(t, 2*time.Minute, 0)
		agent.StopInOrder(t)
	}
	checkRequests(t, s)
}

// awaitNewLine waits for a line that the agent wrote since it was started.
func awaitNewLine(t *testing.T, agent *harness.Agent, words ...string) {
	t.Helper()
	harness.Eventually(t, 5*time.Minute, fmt.Sprintf("the agent says %q", words), func() error {
		for _, line := range agent.NewLines(t) {
			if containsAll(line, words) {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// A namespace whose quota has room for one VM's pod: Harvester halts what is more.
func TestAQuotaOfTheNamespaceIsForeseenByWhatAPodNeeds(t *testing.T) {
	s := harness.Start(t)
	// 8 GiB and 4 CPUs are the guest's.
	for _, quota := range []struct {
		memory string
		plan   string
	}{{"17Gi", "nothing would refuse it"}, {"16Gi", "quota"}} {
		object := harness.Object{
			"apiVersion": "v1", "kind": "ResourceQuota", "metadata": harness.Object{"name": "pool", "namespace": s.Namespace},
			"spec": harness.Object{"hard": harness.Object{"limits.memory": quota.memory}},
		}
		must1(s.Kube.Create(quotas, s.Namespace, object))(t)
		harness.Eventually(t, time.Minute, "the quota is counted", func() error {
			stored, err := s.Kube.Get(quotas, s.Namespace, "pool")
			if err == nil && stored.Str("status", "hard", "limits.memory") == "" {
				err = errors.New("it has no status")
			}
			return err
		})
		agent := s.StartAgent(t)
		harness.Eventually(t, 30*time.Second, fmt.Sprintf("with %s the plan says %q", quota.memory, quota.plan), func() error {
			if out, _ := s.Command(t, "plan", "--count", "2"); !strings.Contains(out, quota.plan) {
				return errors.New(out) // the agent may act on the pool at the moment
			}
			return nil
		})
		s.Metrics.Want(2)
		if quota.memory == "17Gi" {
			s.AwaitSettled(t, 4*time.Minute, 2)
		} else {
			s.AwaitSettled(t, 4*time.Minute, 1)
		}
		for _, vm := range s.VMs(t) {
			if halted := vm.Annotation("harvesterhci.io/insufficient-resource-quota"); halted != "" {
				t.Errorf("%s was halted: %s", vm.Name(), halted)
			}
		}
		s.Reach(t, 2*time.Minute, 0)
		agent.StopInOrder(t)
		must(t, s.Kube.Delete(quotas, s.Namespace, "pool"))
	}
	checkRequests(t, s)
}

var settings = harness.Resource{Group: "harvesterhci.io", Version: "v1beta1", Plural: "settings"}

var quotas = harness.Resource{Version: "v1", Plural: "resourcequotas"}

// Harvester's webhook server does not answer, and comes back.
func TestAnOutageOfHarvestersWebhookIsWaitedFor(t *testing.T) {
	s := harness.StartAlone(t)
	agent := s.StartAgent(t)
	s.Reach(t, 2*time.Minute, 2)

	t.Log("an outage while a VM is to be removed")
	s.HarvesterWebhook.Kill()
	s.Metrics.Want(1)
	awaitNewLine(t, agent, "failed calling webhook")
	if left := len(s.VMs(t)); left != 2 {
		t.Errorf("%d VMs during the outage, want 2", left)
	}
	s.HarvesterWebhook.Restart(t)
	s.AwaitSettled(t, 3*time.Minute, 1)

	t.Log("an outage while a VM is to be made")
	s.HarvesterWebhook.Kill()
	before := len(s.FrontDoor.Requests())
	s.Metrics.Want(2)
	harness.Eventually(t, time.Minute, "a VM is asked for, and refused", func() error {
		for _, request := range s.FrontDoor.Requests()[before:] {
			if request.Method == http.MethodPost && request.Code >= 500 {
				return nil
			}
		}
		return errors.New("it is not")
	})
	s.HarvesterWebhook.Restart(t)
	s.AwaitSettled(t, 3*time.Minute, 2)

	t.Log("what the webhook denies by design: the claim of a VM is not deleted")
	claim := must1(s.Kube.List(harness.Claims, s.Namespace, ""))(t)[0]
	_, err := s.Kube.Do(http.MethodDelete, harness.Claims.Path(s.Namespace, claim.Name()), nil, "application/json", nil)
	if err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("deleting the claim of a VM: %v", err)
	}
	s.Reach(t, 2*time.Minute, 0)
	checkRequests(t, s)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must1 is must for a call that returns a value, too: must1(call())(t).
func must1[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// A controller of KubeVirt or Harvester is killed between two of its writes, and started again later.
func TestAPoolGrowsAndShrinksAlthoughControllersAreKilledBetweenTwoWrites(t *testing.T) {
	s := harness.StartAlone(t)
	agent := s.StartAgent(t)
	harvester := func(operation string, of harness.Resource) harness.Write {
		return harness.Write{Account: "harvester", Operation: operation, Resource: of}
	}
	kubevirt := func(operation string, of harness.Resource) harness.Write {
		return harness.Write{Account: "kubevirt-controller", Operation: operation, Resource: of}
	}
	for _, moment := range []struct {
		name    string
		count   int // the pool had one VM less, or more
		next    harness.Write
		program *harness.Process
		reached func() error
	}{
		{
			"the claims are made, Harvester's finalizer is not on the VM", 1, harvester("UPDATE", harness.VirtualMachines), s.HarvesterServer,
			func() error { return someLeft(s, harness.Claims) },
		},
		{
			"the claims are deleted, Harvester's finalizer is still on the VM", 0, harvester("UPDATE", harness.VirtualMachines), s.HarvesterServer,
			func() error { return terminating(s, harness.Claims) },
		},
		{
			"the instance is made, its pod is not", 1, kubevirt("CREATE", harness.Pods), s.VirtController,
			func() error { return someLeft(s, harness.Instances) },
		},
		{
			"the guest is off, KubeVirt's finalizer is still on the instance", 0, kubevirt("UPDATE", harness.Instances), s.VirtController,
			func() error { return terminating(s, harness.Instances) },
		},
		{
			"the instance is made, the VM's status does not show it", 1, kubevirt("UPDATE", statusOf(harness.VirtualMachines)), s.VirtController,
			func() error { return someLeft(s, harness.Instances) },
		},
		{
			"the instance is gone, KubeVirt's finalizer is still on the VM", 0, kubevirt("UPDATE", harness.VirtualMachines), s.VirtController,
			func() error {
				return errors.Join(terminating(s, harness.VirtualMachines), noneLeft(s, harness.Instances))
			},
		},
	} {
		t.Log(moment.name)
		release := s.Hold(t, moment.next)
		s.Metrics.Want(moment.count)
		harness.Eventually(t, 2*time.Minute, moment.name, moment.reached)
		moment.program.Kill()
		release()
		moment.program.Restart(t)
		s.AwaitSettled(t, 4*time.Minute, moment.count)
	}
	checkLog(t, agent, 6)
	checkRequests(t, s)
}

func statusOf(r harness.Resource) harness.Resource {
	r.Plural += "/status"
	return r
}

// someLeft returns nil if the stack's namespace has an object of the kind.
func someLeft(s *harness.Stack, resource harness.Resource) error {
	objects, err := s.Kube.List(resource, s.Namespace, "")
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("there are no %s", resource.Plural)
	}
	return err
}

// terminating returns nil if each object of the kind is being deleted.
func terminating(s *harness.Stack, resource harness.Resource) error {
	objects, err := s.Kube.List(resource, s.Namespace, "")
	for _, object := range objects {
		if !object.Terminating() {
			err = errors.Join(err, fmt.Errorf("%s is not being deleted", object.Name()))
		}
	}
	return err
}
