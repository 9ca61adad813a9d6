// SPDX-License-Identifier: Apache-2.0

//go:build newer

// Nomad 1.11 lets a server demand that a client's first registration has a token
// (client introduction). The facts below are what the plugin depends on.

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/fidelity"
	"nomad-harvester.local/test/e2e/harness"
)

// environmentFile is where a client has a token in its environment.
const environmentFile = "/etc/nomad.d/nomad.env"

// introduce returns the token that a server gives for a request. A server that has
// just been elected answers 500 "failed to sign node introduction identity claims:
// keyring has not been initialized yet" for a moment.
func introduce(t *testing.T, nomad *harness.Nomad, request harness.Object) string {
	t.Helper()
	var reply harness.Object
	harness.Eventually(t, 10*time.Second, fmt.Sprintf("a token for %v", request), func() (err error) {
		reply, err = nomad.Do(http.MethodPost, "/v1/acl/identity/client-introduction-token", request)
		return err
	})
	return reply.Str("JWT")
}

// claims returns the claims of a JSON Web Token, which the client does not check.
func claims(t *testing.T, token string) harness.Object {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("a JSON Web Token has three parts: %s", token)
	}
	data := must1(base64.RawURLEncoding.DecodeString(parts[1]))(t)
	var object harness.Object
	must(t, json.Unmarshal(data, &object))
	return object
}

// The lifetime is TTL, the server's default without one, and at most the server's
// maximum; the reply does not say that it was cut (hashicorp/nomad:nomad/structs/acl.go,
// IdentityTTL). A negative TTL gives a token that never expires
// (nomad/structs/identity.go, setExpiry).
func checkClaims(t *testing.T, nomad *harness.Nomad) {
	t.Helper()
	for _, test := range []struct {
		request  harness.Object
		lifetime int64
		name     string
		pool     string
	}{
		{harness.Object{"TTL": "10m", "NodeName": introducedName, "NodePool": "gpu"}, 600, introducedName, "gpu"},
		{harness.Object{"TTL": 600_000_000_000}, 600, "", "default"},
		{harness.Object{}, 300, "", "default"},
		{harness.Object{"TTL": "100h"}, 1800, "", "default"},
		{harness.Object{"TTL": "-1s"}, -1, "", "default"},
	} {
		got := claims(t, introduce(t, nomad, test.request))
		lifetime := got.Int("exp") - got.Int("iat")
		if got.At("exp") == nil {
			lifetime = -1
		}
		if lifetime != test.lifetime {
			t.Errorf("%v is valid for %d s, want %d", test.request, lifetime, test.lifetime)
		}
		if got.Str("nomad_node_name") != test.name || got.Str("nomad_node_pool") != test.pool {
			t.Errorf("%v: claims %v", test.request, got)
		}
		if want := "node-introduction:global:" + test.pool + ":" + test.name + ":default"; got.Str("sub") != want {
			t.Errorf("%v: subject %q, want %q", test.request, got.Str("sub"), want)
		}
		if got.Str("aud") != "nomadproject.io" || got.Int("nbf") != got.Int("iat") || got.Str("jti") == "" {
			t.Errorf("%v: claims %v", test.request, got)
		}
	}
}

// awaitRefusal waits until a client says that it was refused, and the server why;
// empty: it does not say. The client tries again every 15 to 30 seconds with the same
// token (hashicorp/nomad:client/client.go, retryRegisterNode).
func awaitRefusal(t *testing.T, s *harness.Stack, machine *harness.Machine, why string) {
	t.Helper()
	awaitLine(t, machine.Log, `[ERROR] client: error registering: error="rpc error: Permission denied"`)
	if why != "" {
		awaitLine(t, s.NomadServer.Log, "[ERROR] nomad.client: node registration "+why+": enforcement_level=", "node_name="+machine.Name)
	}
	log := must1(os.ReadFile(s.NomadServer.Log))(t)
	if said := strings.Contains(string(log), machine.Name); said != (why != "") {
		t.Errorf("the server tells of %s: %v", machine.Name, said)
	}
	if node, err := s.Nomad.Node(machine.Name); err != nil || node != nil {
		t.Errorf("%s is a node: %v %v", machine.Name, node, err)
	}
}

func TestNomad111IntroducesClients(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{Server: `client_introduction { enforcement = "strict" }`})
	state := nodeState(t, s)
	var answers []fidelity.Answer
	ask := func(steps []fidelity.Step) { answers = append(answers, askNomad(t, s, state, steps)...) }

	// A token is accepted until a minute after its expiry
	// (go-jose/go-jose:jwt/validation.go, DefaultLeeway), so its client comes last.
	expired := introduce(t, s.Nomad, harness.Object{"TTL": "1ms"})
	expiry := time.Unix(claims(t, expired).Int("exp"), 0)
	checkClaims(t, s.Nomad)
	ask(fidelity.Introduction)

	mine := introduce(t, s.Nomad, harness.Object{"NodeName": introducedName})
	introduced := boot(t, s, introducedName, map[string]string{tokenFile: mine + "\n"})
	boot(t, s, "clients-by-env", map[string]string{environmentFile: "NOMAD_CLIENT_INTRO_TOKEN=" + introduce(t, s.Nomad, harness.Object{}) + "\n"})
	refused := []struct {
		machine *harness.Machine
		why     string
	}{
		{boot(t, s, "clients-no-token", nil), "without introduction token"},
		{boot(t, s, "clients-not-mine", map[string]string{tokenFile: mine}), "introduction claims mismatch"},
		{boot(t, s, "clients-else-pool", map[string]string{tokenFile: introduce(t, s.Nomad, harness.Object{"NodePool": "gpu"})}), "introduction claims mismatch"},
		// Nor does the server tell of a token of another cluster (nomad/node_endpoint.go, Register).
		{boot(t, s, "clients-no-jwt", map[string]string{tokenFile: "x"}), ""},
	}
	for _, test := range refused {
		awaitRefusal(t, s, test.machine, test.why)
	}
	awaitReady(t, s, "clients-by-env")

	node := awaitReady(t, s, introducedName)
	state["node"] = node.Str("ID")
	ask(fidelity.Metadata)
	job := must1(json.Marshal(harness.Object{"Job": harness.SampleJob(introducedName)}))(t)
	state["job"] = string(job)
	ask(fidelity.CleanUp)
	introduced.Kill()
	ask(fidelity.MetadataOfTheLost)

	harness.Eventually(t, 2*time.Minute, "the token has expired", func() error {
		if left := time.Until(expiry.Add(61 * time.Second)); left > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
	late := boot(t, s, "clients-too-late", map[string]string{tokenFile: expired})
	awaitRefusal(t, s, late, "introduction authentication failure")
	awaitLine(t, s.NomadServer.Log, "node_name="+late.Name, `error="invalid claims: `, `token is expired (exp)"`)

	// It has an identity of its own since: the token of its first start is not asked for.
	boot(t, s, introducedName, map[string]string{tokenFile: expired})
	if again := awaitReady(t, s, introducedName); again.Str("ID") != node.Str("ID") {
		t.Errorf("after its reboot the node is %s, not %s", again.Str("ID"), node.Str("ID"))
	} else if host := again.Str("Meta", "harvester_host"); host != "node-2" {
		t.Errorf("after its reboot the metadata that was set is %q", host)
	}
	if *update {
		must(t, fidelity.WriteAnswers(recorded, answers))
	}
	compareRecorded(t, answers)
}

// Enforcement "warn", the default: who comes without a token is let in, who comes
// with a wrong one is not (hashicorp/nomad:nomad/node_endpoint.go, newRegistrationAllowed).
func TestNomad111WarnsOfClientsThatNobodyIntroduced(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{})
	boot(t, s, "clients-no-token", nil)
	awaitReady(t, s, "clients-no-token")
	awaitLine(t, s.NomadServer.Log, "[WARN]  nomad.client: node registration without introduction token:", "enforcement_level=warn", "node_name=clients-no-token")
	other := boot(t, s, "clients-not-mine", map[string]string{tokenFile: introduce(t, s.Nomad, harness.Object{"NodeName": introducedName})})
	awaitRefusal(t, s, other, "introduction claims mismatch")

	// The example's unit removes such a token before Nomad starts, if it has expired.
	files := harness.ExampleFiles(t, "cloud-init-introduction.yaml")
	delete(files, "/etc/nomad.d/nomad.hcl")
	files[tokenFile] = introduce(t, s.Nomad, harness.Object{"NodeName": introducedName, "TTL": "1ms"})
	boot(t, s, "clients-dropped", files)
	awaitReady(t, s, "clients-dropped")
}

func TestNomad111IntroducesClientsWithoutACLs(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{WithoutACLs: true})
	if name := claims(t, introduce(t, s.Nomad, harness.Object{"NodeName": introducedName})).Str("nomad_node_name"); name != introducedName {
		t.Errorf("the token is for %q", name)
	}
}
