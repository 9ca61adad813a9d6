// SPDX-License-Identifier: Apache-2.0

// Nomad before 1.11 has no introduction tokens; the other tests of them are in introduction_test.go.

package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/fidelity"
	"nomad-harvester.local/test/e2e/harness"
)

var introduces = harness.Release{Major: 1, Minor: 11}

// Introduction is new in 1.11; the metadata of clients is not.
func TestOnlyNomad111IntroducesClients(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{})
	want := http.StatusOK
	if s.Nomad.Release(t).Before(introduces) {
		want = http.StatusNotFound
	}
	// A server that has just started has no keyring yet.
	harness.Eventually(t, 30*time.Second, "the server makes tokens, or knows none", func() error {
		response, body, err := s.Nomad.Request(http.MethodPost, "/v1/acl/identity/client-introduction-token", harness.Object{"TTL": "10m"})
		if err != nil {
			return err
		}
		if response.StatusCode != want || (want == http.StatusNotFound && len(body) > 0) {
			return fmt.Errorf("%d %q, want %d", response.StatusCode, body, want)
		}
		return nil
	})

	state := nodeState(t, s)
	machine := boot(t, s, introducedName, nil)
	state["node"] = awaitReady(t, s, introducedName).Str("ID")
	answers := askNomad(t, s, state, fidelity.Metadata)
	machine.Kill()
	answers = append(answers, askNomad(t, s, state, fidelity.MetadataOfTheLost)...)
	compareRecorded(t, answers)
}

const (
	expiryAnnotation = "nomad-harvester-autoscaler/intro-token-expires"
	// How every JSON Web Token begins; that of the ServiceAccount is one, too.
	tokenBegins = "eyJ"
)

// introTokenKey is the key of a Secret with the token alone.
const introTokenKey = "nomad-intro-token"

func decoded(t *testing.T, secret harness.Object, key string) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(secret.Str("data", key))
	if err != nil {
		t.Fatalf("%s of %s: %v", key, secret.Name(), err)
	}
	return string(data)
}

// Nomad before 1.11: checkNotIntroduced checks the VMs of nomad_intro_token = "auto".
func checkNotIntroduced(t *testing.T, s *harness.Stack, agent *harness.Agent) {
	t.Helper()
	if !s.Nomad.Release(t).Before(introduces) {
		return // its VMs are introduced
	}
	secrets := must1(s.Kube.List(harness.Secrets, s.Namespace, ""))(t)
	for _, secret := range secrets {
		userData := decoded(t, secret, "userdata")
		if !strings.Contains(userData, `content: ""`) || strings.Contains(userData, tokenBegins) ||
			secret.Str("data", introTokenKey) != "" || secret.Annotation(expiryAnnotation) != "" {
			t.Errorf("%s is not that of a VM without a token", secret.Name())
		}
	}
	for _, machine := range s.Machines.Running() {
		if _, err := os.Stat(filepath.Join(machine.Data, "client", "intro_token.jwt")); !os.IsNotExist(err) {
			t.Errorf("%s has an empty token: %v", machine.Name, err)
		}
	}
	warnings := 0
	for _, line := range agent.PluginLines(t) {
		if line.Str("@level") == "warn" && strings.HasPrefix(line.Str("@message"), "Nomad has no introduction tokens") {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("%d warnings that Nomad has no introduction tokens, want 1", warnings)
	}
}
