// SPDX-License-Identifier: Apache-2.0

//go:build newer

// Pools whose VMs the plugin introduces to Nomad (examples/cloud-init-introduction.yaml).

package e2e

import (
	"context"
	"encoding/json"
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

// Tokens of a minute, so that half of their time is over soon.
const strictAndShort = `
client_introduction {
  enforcement          = "strict"
  default_identity_ttl = "1m"
  max_identity_ttl     = "1m"
}`

func TestNomad111LetsInTheVMsThatThePluginIntroduces(t *testing.T) {
	s := harness.StartWith(t, harness.NomadOptions{Server: strictAndShort})
	s.Introduction = "required"

	t.Log("a token without node:write")
	full := s.PluginNomadToken
	read := must1(s.Nomad.NewToken("reader", `node { policy = "read" } namespace "*" { capabilities = ["read-job"] }`))(t)
	s.PluginNomadToken = read
	agent := s.StartAgent(t)
	s.Metrics.Want(1)
	awaitLine(t, agent.Log, "Scale refused", "nomad_intro_token: make an introduction token for Nomad client batch-sample", "403", `node { policy = \"write\" }`)
	if err := s.Settled(0); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	agent.StopInOrder(t)

	t.Log("a clone that takes longer than half of a token's time")
	s.Fail(harness.Faults{HoldClaims: true})
	s.PluginNomadToken = full
	agent = s.StartAgent(t)
	secret := awaitSecret(t, s, func(secret harness.Object) error { return nil })
	first := checkSecretToken(t, secret)
	second := checkSecretToken(t, awaitSecret(t, s, func(secret harness.Object) error {
		if token := decoded(t, secret, introTokenKey); token == first {
			return errors.New("its token is the first one")
		}
		return nil
	}))
	s.Fail(harness.Faults{})
	s.AwaitSettled(t, time.Minute, 1)
	machine := s.Machines.Running()[0]
	if data, err := os.ReadFile(filepath.Join(machine.Data, "client", "intro_token.jwt")); err != nil || string(data) != second {
		t.Errorf("the machine's token is not that of its Secret: %v", err)
	}
	// After the join nobody needs it: it is not renewed any more.
	if token := decoded(t, awaitSecret(t, s, func(harness.Object) error { return nil }), introTokenKey); token != second {
		t.Error("the token was renewed after the boot")
	}
	checkTokensAreSecret(t, s, agent)
	checkLog(t, agent, 1)
	agent.StopInOrder(t)

	t.Log("without the key")
	s.Introduction, s.JoinTimeout = "", 8*time.Second
	agent = s.StartAgent(t)
	s.Metrics.Want(2)
	awaitLine(t, agent.Log, failedCreation, "it has not joined Nomad by its deadline: its guest runs since 20", ", its guest agent answers, and no Nomad node has its name",
		"if Nomad's servers enforce client introduction (1.11 and newer), set nomad_intro_token")
	s.Reach(t, time.Minute, 1)
	checkRequests(t, s)
}

// With ACLs off Nomad gives tokens to whoever asks. The plugin is killed when it has
// created a VM's Secret, and its request for the VM is on its way.
func TestNomad111WithoutACLsIntroducesTheVMOfAKilledPlugin(t *testing.T) {
	s := harness.StartWith(t, harness.NomadOptions{Server: `client_introduction { enforcement = "strict" }`, WithoutACLs: true})
	s.Introduction = "auto"
	created, killed := make(chan struct{}), make(chan struct{})
	s.FrontDoor.Before(func(r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != harness.VirtualMachines.Path(s.Namespace) || r.URL.Query().Has("dryRun") {
			return
		}
		s.FrontDoor.Before(nil)
		close(created)
		<-killed
		lost, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(lost)
	})
	agent := s.StartAgent(t)
	s.Metrics.Want(1)
	select {
	case <-created:
	case <-time.After(time.Minute):
		close(killed)
		t.Fatal("no VM was requested within a minute")
	}
	agent.KillBoth(t)
	close(killed)
	checkSecretToken(t, awaitSecret(t, s, func(harness.Object) error { return nil }))
	if vms := s.VMs(t); len(vms) > 0 {
		t.Fatalf("%d VMs when none was requested", len(vms))
	}

	agent = s.StartAgent(t)
	s.AwaitSettled(t, 2*time.Minute, 1)
	checkSecretToken(t, awaitSecret(t, s, func(harness.Object) error { return nil }))
	checkTokensAreSecret(t, s, agent)
	checkRequests(t, s)
}

// awaitSecret waits for the only Secret to be as it should.
func awaitSecret(t *testing.T, s *harness.Stack, check func(harness.Object) error) harness.Object {
	t.Helper()
	var found harness.Object
	harness.Eventually(t, time.Minute, "the VM's Secret", func() error {
		secrets, err := s.Kube.List(harness.Secrets, s.Namespace, "")
		if err != nil || len(secrets) != 1 {
			return fmt.Errorf("%d Secrets: %v", len(secrets), err)
		}
		found = secrets[0]
		return check(found)
	})
	return found
}

// checkSecretToken: the Secret has one token, in the user data as beside it, which is for the
// client of its VM and expires when the annotation says. Returns it.
func checkSecretToken(t *testing.T, secret harness.Object) string {
	t.Helper()
	token := decoded(t, secret, introTokenKey)
	before, after, found := strings.Cut(decoded(t, secret, "userdata"), token)
	if !found || strings.Contains(before+after, tokenBegins) {
		t.Errorf("the user data of %s does not have the token beside it, and no other", secret.Name())
	}
	got := claims(t, token)
	if name := got.Str("nomad_node_name"); name+"-cloudinit" != secret.Name() || got.Str("nomad_node_pool") != "default" {
		t.Errorf("the token of %s is for %q in %q", secret.Name(), name, got.Str("nomad_node_pool"))
	}
	expires := must1(time.Parse(time.RFC3339, secret.Annotation(expiryAnnotation)))(t)
	// The annotation is by the API server's clock, which tells seconds.
	if off := expires.Sub(time.Unix(got.Int("exp"), 0)); off < -3*time.Second || off > 3*time.Second {
		t.Errorf("the token of %s expires %v before its annotation says", secret.Name(), off)
	}
	return token
}

// checkTokensAreSecret: outside of the data of Secrets, no object has a token, and no log.
func checkTokensAreSecret(t *testing.T, s *harness.Stack, agent *harness.Agent) {
	t.Helper()
	seen := 0
	for _, resource := range []harness.Resource{
		harness.VirtualMachines, harness.Instances, harness.Claims, harness.Secrets, harness.Leases, harness.Events,
	} {
		objects := must1(s.Kube.List(resource, s.Namespace, ""))(t)
		for _, object := range objects {
			if resource == harness.Secrets {
				delete(object, "data")
			}
			text := must1(json.Marshal(object))(t)
			if strings.Contains(string(text), tokenBegins) {
				t.Errorf("a token in %s %s", resource.Plural, object.Name())
			}
			seen++
		}
	}
	if seen < 6 {
		t.Errorf("%d objects, want one of each kind at least", seen)
	}
	log := must1(os.ReadFile(agent.Log))(t)
	if strings.Contains(string(log), tokenBegins) {
		t.Error("a token in the log of the agent and the plugin")
	}
}
