// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// serviceAccount is the plugin's, as in examples/rbac.yaml.
const serviceAccount = "nomad-harvester-autoscaler"

// nomadRules are the least rights that the plugin needs in Nomad.
const nomadRules = `
node { policy = "write" }
namespace "*" { capabilities = ["read-job"] }
`

// Stack is the plugin's environment: a namespace of a Harvester cluster, and a Nomad server of its own.
type Stack struct {
	*Cluster
	Namespace string
	Dir       string
	Nomad     *Nomad // as administrator
	Machines  *Machines
	FrontDoor *FrontDoor
	Metrics   *Metrics

	// NomadServer may be killed and restarted.
	NomadServer *Process

	// PluginKube is a client with the plugin's rights.
	PluginKube       *Kube
	PluginTokenFile  string
	PluginNomadToken string

	// AgentPart is the real part that StartAgent runs, DrainDeadline the policy's. PolicyKeys are
	// set in the policy.
	AgentPart string
	// AgentSettings are added to the agent's configuration.
	AgentSettings string
	DrainDeadline time.Duration
	PolicyKeys    map[string]string
	// Check, if it is set, takes the place of the policy's check.
	Check string
	// Template, if it is set, takes the place of the policy's keys that describe a VM.
	Template string
	// JoinTimeout and Introduction (nomad_intro_token; empty: none) are the policy's, too.
	JoinTimeout  time.Duration
	Introduction string
	// DrainOnShutdown is the deadline of the VMs' own drain, with NomadOptions.TLS.
	DrainOnShutdown time.Duration
	// MetricsAddress, if it is set, is where the plugin serves its metrics.
	MetricsAddress string

	tellsKeys bool // Nomad tells its keys' ids, by which the plugin knows a cluster: from 1.7 on
}

// slots limits the number of stacks that share a cluster at a time. A stack mostly waits;
// more of them would compete for the processors.
var slots = make(chan struct{}, 2)

// Start starts everything except the agent, in a cluster that other tests use, too; it is stopped at
// the end of the test. Tests run in parallel.
func Start(t *testing.T) *Stack {
	t.Helper()
	return StartWith(t, NomadOptions{})
}

// StartWith is Start with another Nomad.
func StartWith(t *testing.T, nomad NomadOptions) *Stack {
	t.Helper()
	takeTurn(t, slots)
	return startStack(t, shared.get(t), nomad)
}

// StartAlone is Start in a cluster that no other test uses at the time: its programs may be killed, and its
// hosts.
func StartAlone(t *testing.T) *Stack {
	t.Helper()
	takeTurn(t, turns)
	cluster := alone.get(t)
	cluster.mend(t)
	return startStack(t, cluster, NomadOptions{})
}

// takeTurn waits, beside other tests, until there is room.
func takeTurn(t *testing.T, room chan struct{}) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the machines' namespaces need root")
	}
	t.Parallel()
	room <- struct{}{}
	t.Cleanup(func() { <-room })
}

func startStack(t *testing.T, cluster *Cluster, nomad NomadOptions) *Stack {
	t.Helper()
	began := time.Now()
	s := &Stack{
		Cluster: cluster, Dir: temporaryDir(t), AgentPart: "agent", DrainDeadline: 30 * time.Second, JoinTimeout: 2 * time.Minute,
	}
	t.Cleanup(func() { cluster.showLogs(t) })
	s.Nomad, s.NomadServer = startNomad(t, s.Dir, nomad)
	s.Namespace = cluster.addNamespace(t)
	bootstrapNomad(t, s.Nomad, s.NomadServer, nomad)
	s.tellsKeys = !s.Nomad.Release(t).Before(Release{1, 7})
	s.FrontDoor = startFrontDoor(t, s.Kube, s.Certificates)
	s.Metrics = startMetrics(t)
	s.Machines = newMachines(t, filepath.Join(s.Dir, "machines"), s.Nomad)
	if nomad.Guests {
		s.Machines.image = guestDisk(t)
	}
	cluster.players.addMachines(s.Namespace, s.Machines)
	t.Cleanup(s.leave)

	token := must[string](t, "the plugin's token")(s.Kube.TokenFor(s.Namespace, serviceAccount))
	s.PluginKube = &Kube{URL: s.FrontDoor.URL, Token: token, HTTP: s.Kube.HTTP}
	s.PluginTokenFile = filepath.Join(s.Dir, "plugin.token")
	check(t, s.PluginTokenFile, os.WriteFile(s.PluginTokenFile, []byte(token+"\n"), 0o600))
	if !nomad.WithoutACLs {
		s.PluginNomadToken = must[string](t, "the plugin's Nomad token")(s.Nomad.NewToken("plugin", nomadRules))
	}
	t.Logf("the stack is up after %v", time.Since(began).Round(100*time.Millisecond))
	return s
}

// leave removes what a test has left in the cluster, so that no controller starts a guest of it again.
func (s *Stack) leave() {
	_ = poll(time.Minute, func() error {
		vms, err := s.Kube.List(VirtualMachines, s.Namespace, "")
		for _, vm := range vms {
			if !vm.Terminating() {
				err = errors.Join(err, s.Kube.Delete(VirtualMachines, s.Namespace, vm.Name()))
			}
		}
		if err == nil && len(vms) > 0 {
			err = fmt.Errorf("%d VMs", len(vms))
		}
		return err
	})
	s.players.forget(s.Namespace)
}

// temporaryDir has a short path, because of the sockets below it. It is kept if
// NOMAD_HARVESTER_E2E_KEEP is set.
func temporaryDir(t testing.TB) string {
	t.Helper()
	dir := must[string](t, "temporary directory")(os.MkdirTemp("", "nh-e2e-"))
	check(t, dir, os.Mkdir(filepath.Join(dir, "machines"), 0o700))
	t.Cleanup(func() {
		if os.Getenv("NOMAD_HARVESTER_E2E_KEEP") != "" {
			t.Logf("logs are kept in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	})
	return dir
}
