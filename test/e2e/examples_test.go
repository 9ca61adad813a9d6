// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Checks of examples/ in the environment that uses them.

// checkMachines: the configuration that cloud-init made from the packaged one is
// valid, and each VM is a client of the cluster and not a server.
func checkMachines(t *testing.T, s *harness.Stack, want int) {
	t.Helper()
	machines := s.Machines.Running()
	if len(machines) != want {
		t.Fatalf("%d machines run, want %d", len(machines), want)
	}
	if err := s.Machines.Validate(machines[0]); err != nil {
		t.Error(err)
	}
	for _, machine := range machines {
		self := must1(machine.Self())(t)
		if self.Bool("config", "Server", "Enabled") || !self.Bool("config", "Client", "Enabled") {
			t.Errorf("%s: server %v, client %v, want a client only", machine.Name,
				self.At("config", "Server", "Enabled"), self.At("config", "Client", "Enabled"))
		}
	}
	members := must1(s.Nomad.Get("/v1/agent/members"))(t)
	if servers := members.List("Members"); len(servers) != 1 {
		t.Errorf("%d servers, want 1: %v", len(servers), servers)
	}
}

// The script that the unit of examples/cloud-init-introduction.yaml runs before Nomad.
func TestTheExampleDropsATokenThatHasExpired(t *testing.T) {
	files := harness.ExampleFiles(t, "cloud-init-introduction.yaml")
	script := files["/usr/local/sbin/drop-nomad-intro-token"]
	if script == "" || !strings.Contains(script, "file="+tokenFile+"\n") {
		t.Fatalf("the script is %q", script)
	}
	token := func(claims string) string {
		return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
	}
	now := time.Now().Unix()
	for name, test := range map[string]struct {
		content string
		kept    bool
	}{
		"valid":            {token(fmt.Sprintf(`{"aud":"nomadproject.io","exp":%d,"iat":%d}`, now+60, now)), true},
		"valid, last":      {token(fmt.Sprintf(`{"sub":"a?~\u00ff>b","exp":%d}`, now+60)), true},
		"expired":          {token(fmt.Sprintf(`{"aud":"nomadproject.io","exp":%d,"iat":%d}`, now-1, now-61)), false},
		"expired, padded":  {token(fmt.Sprintf(`{"aud":"?~>?~","exp":%d,"iat":%d}`, now-1, now-61)), false},
		"expired, a line":  {token(fmt.Sprintf(`{"aud":"nomad","exp":%d}`, now-1)) + "\n", false},
		"without expiry":   {token(`{"aud":"nomadproject.io"}`), true},
		"without a dot":    {"x", true},
		"no base64":        {"a.***.c", true},
		"empty":            {"", false},
		"only white space": {" \n", true},
	} {
		path := filepath.Join(t.TempDir(), "intro_token.jwt")
		must(t, os.WriteFile(path, []byte(test.content), 0o600))
		for range 2 { // at each start
			out, err := exec.Command("/bin/sh", "-c", strings.ReplaceAll(script, tokenFile, path)).CombinedOutput()
			if err != nil && test.kept {
				t.Errorf("%s: %v: %s", name, err, out)
			}
			if data, err := os.ReadFile(path); (err == nil) != test.kept || (test.kept && string(data) != test.content) {
				t.Errorf("%s: %q %v, want it kept: %v", name, data, err, test.kept)
			}
		}
	}
}

// checkMetricNames: the server exposes the metrics in the query of policy.hcl. A
// job's name is the label "job" here; Prometheus renames it to exported_job,
// because it sets a label "job" itself.
func checkMetricNames(t *testing.T, s *harness.Stack) {
	t.Helper()
	policy := must1(os.ReadFile(filepath.Join(harness.Root, "examples", "policy.hcl")))(t)
	parts := regexp.MustCompile(`__name__=~"([^"]+)"(?s:.*)and on\(\) (\w+)\n`).FindSubmatch(policy)
	if parts == nil {
		t.Fatal("examples/policy.hcl has no query as this test knows it")
	}
	demand := regexp.MustCompile(`(?m)^(` + string(parts[1]) + `)\{.*\bjob="web".*\btask_group="group"`)
	guard := regexp.MustCompile(`(?m)^` + string(parts[2]) + `[ {]`)
	harness.Eventually(t, 30*time.Second, "Nomad exposes what the policy asks for", func() error {
		exposed, err := s.Nomad.Metrics()
		if err != nil {
			return err
		}
		names := map[string]bool{}
		for _, series := range demand.FindAllStringSubmatch(exposed, -1) {
			names[series[1]] = true
		}
		if !guard.MatchString(exposed) || len(names) != 3 {
			return fmt.Errorf("%v has a match: %v; %v matches %v", guard, guard.MatchString(exposed), demand, names)
		}
		return nil
	})
}

// checkGarbageCollection: a leftover volume is deleted.
func checkGarbageCollection(t *testing.T, s *harness.Stack) {
	t.Helper()
	const claim = "batch-x7k2p-disk-0-a1b2c"
	must1(s.Kube.Create(harness.Claims, s.Namespace, harness.SampleClaim(s.Namespace, claim, "batch")))(t)
	out := s.CollectGarbage(t)
	if !strings.Contains(out, claim) || !strings.Contains(out, s.Namespace+"/batch: clean") {
		t.Errorf("harvester gc said: %s", out)
	}
	if err := s.Settled(0); err != nil {
		t.Errorf("after harvester gc: %v", err)
	}
}

// onlyInFailures returns the rights that a run without failures does not have to use.
func onlyInFailures(namespace string) map[harness.Right]string {
	const images = "default"
	return map[harness.Right]string{
		{Verb: "get", Group: "kubevirt.io", Resource: "virtualmachineinstances", Namespace: namespace}:          "a node that goes down during its removal: does its VM still run?",
		{Verb: "get", Resource: "secrets", Namespace: namespace}:                                                "a Secret whose creation got no reply, whose owner is set later, or whose token is renewed",
		{Verb: "delete", Resource: "secrets", Namespace: namespace}:                                             "a Secret whose VM was never made, or that the garbage collector is slow to remove",
		{Verb: "list", Group: "harvesterhci.io", Resource: "virtualmachinetemplates", Namespace: images}:        "a template that is not there: which ones are",
		{Verb: "list", Group: "harvesterhci.io", Resource: "keypairs", Namespace: images}:                       "a key pair that is not there: which ones are",
		{Verb: "list", Group: "k8s.cni.cncf.io", Resource: "network-attachment-definitions", Namespace: images}: "a network that is not there: which ones are",
		{Verb: "list", Group: "events.k8s.io", Resource: "events", Namespace: namespace}:                        "a VM whose guest does not run after a minute: do its volumes come?",
		{Verb: "list", Resource: "pods", Namespace: namespace}:                                                  "a VM that no host takes for twenty seconds: why?",
		{Verb: "patch", Group: "events.k8s.io", Resource: "events", Namespace: namespace}:                       "an Event that repeats within ten minutes",
	}
}

// checkRights: examples/rbac.yaml grants what was asked for, and nothing else.
func checkRights(t *testing.T, s *harness.Stack) {
	t.Helper()
	used, _ := s.Asked(t)
	granted, unused := s.Granted(t), onlyInFailures(s.Namespace)
	for _, right := range granted {
		if used[right] == 0 && unused[right] == "" {
			t.Errorf("examples/rbac.yaml grants %v, and nothing uses it", right)
		}
	}
	for right := range unused {
		if !slices.Contains(granted, right) {
			t.Errorf("examples/rbac.yaml does not grant %v", right)
		}
	}
	checkRefusals(t, s)
}
