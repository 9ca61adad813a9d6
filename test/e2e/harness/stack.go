// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The namespaces of VMs and of their images, networks and keys, as in examples/rbac.yaml.
const (
	Namespace      = "nomad"
	serviceAccount = "nomad-harvester-autoscaler"
)

// nomadRules are the least rights that the plugin needs in Nomad.
const nomadRules = `
node { policy = "write" }
namespace "*" { capabilities = ["read-job"] }
`

// Stack is the plugin's environment.
type Stack struct {
	Dir          string
	Certificates *Certificates
	Kube         *Kube  // as administrator
	Nomad        *Nomad // as administrator
	Machines     *Machines
	FrontDoor    *FrontDoor
	Metrics      *Metrics

	// Processes that a test may restart.
	APIServer, NomadServer *Process

	// PluginKube is a client with the plugin's rights.
	PluginKube       *Kube
	PluginTokenFile  string
	PluginNomadToken string

	// AgentPart is the real part that StartAgent runs, DrainDeadline the policy's. PolicyKeys are
	// added to the policy.
	AgentPart string
	// AgentSettings are added to the agent's configuration.
	AgentSettings string
	DrainDeadline time.Duration
	PolicyKeys    map[string]string
	// Template, if it is set, takes the place of the policy's keys that describe a VM.
	Template string
	// JoinTimeout and Introduction (nomad_intro_token; empty: none) are the policy's, too.
	JoinTimeout  time.Duration
	Introduction string
	// DrainOnShutdown is the deadline of the VMs' own drain, with NomadOptions.TLS.
	DrainOnShutdown time.Duration
	// MetricsAddress, if it is set, is where the plugin serves its metrics.
	MetricsAddress string

	// The programs of Harvester and KubeVirt, in a stack of StartHarvester.
	VirtAPI, VirtController, HarvesterWebhook, HarvesterServer *Process

	etcd            string
	controller      *Controller
	players         *players
	real            bool
	kubevirtObjects []Object // webhook configurations and APIServices
}

// slots limits the number of stacks that run in parallel. A stack mostly waits;
// more of them would compete for the processors.
var slots = make(chan struct{}, 2)

// Start starts everything except the agent; it is stopped at the end of the test.
// Tests run in parallel.
func Start(t *testing.T) *Stack {
	t.Helper()
	return StartWith(t, NomadOptions{Part: "nomad"})
}

// StartWith is Start with another Nomad.
func StartWith(t *testing.T, nomad NomadOptions) *Stack {
	t.Helper()
	return startStack(t, nomad, false)
}

// StartHarvester is Start with Harvester's and KubeVirt's own programs.
func StartHarvester(t *testing.T) *Stack {
	t.Helper()
	return startStack(t, NomadOptions{Part: "nomad"}, true)
}

func startStack(t *testing.T, nomad NomadOptions, real bool) *Stack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the machines' namespaces need root")
	}
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	began := time.Now()
	dir := temporaryDir(t)
	s := &Stack{real: real, AgentPart: "agent", DrainDeadline: 30 * time.Second, JoinTimeout: 2 * time.Minute, Dir: dir, Certificates: newCertificates(t, dir)}
	s.Nomad, s.NomadServer = startNomad(t, dir, nomad)
	s.startKube(t)
	bootstrapNomad(t, s.Nomad, s.NomadServer, nomad)
	s.FrontDoor = startFrontDoor(t, s.Kube, s.Certificates)
	s.Metrics = startMetrics(t)
	s.Machines = newMachines(t, filepath.Join(dir, "machines"), s.Nomad, nomad.Part)
	if real {
		s.startHarvester(t)
	} else {
		startControllerManager(t, dir, s.Kube, s.Certificates)
		s.controller = startController(t, dir, s.Kube, Namespace, s.Machines)
	}

	token := must[string](t, "the plugin's token")(s.Kube.TokenFor(Namespace, serviceAccount))
	s.PluginKube = &Kube{URL: s.FrontDoor.URL, Token: token, HTTP: s.Kube.HTTP}
	s.PluginTokenFile = filepath.Join(dir, "plugin.token")
	check(t, s.PluginTokenFile, os.WriteFile(s.PluginTokenFile, []byte(token+"\n"), 0o600))
	if !nomad.WithoutACLs {
		s.PluginNomadToken = must[string](t, "the plugin's Nomad token")(s.Nomad.NewToken("plugin", nomadRules))
	}
	t.Logf("the stack is up after %v", time.Since(began).Round(100*time.Millisecond))
	return s
}

// StartKube starts only the Kubernetes API, with the objects of a Harvester cluster
// and KubeVirt's admission; returns an administrator's client. No controller acts on
// what is created. Tests run in parallel.
func StartKube(t *testing.T) *Kube {
	t.Helper()
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	dir := temporaryDir(t)
	s := &Stack{Dir: dir, Certificates: newCertificates(t, dir)}
	s.startKube(t)
	return s.Kube
}

func (s *Stack) startKube(t *testing.T) {
	t.Helper()
	s.etcd = startEtcd(t, s.Dir)
	s.Kube, s.APIServer = startAPIServer(t, s.Dir, s.etcd, s.Certificates)
	files := []string{testdata("harvester-objects.yaml"), rbacFile}
	if s.real {
		s.applyHarvesterDefinitions(t)
	} else {
		applyDefinitions(t, s.Kube)
		files = append(files, testdata("harvester-own.yaml"))
	}
	for _, file := range files {
		check(t, file, s.Kube.Apply(must[[]Object](t, file)(readYAML(file))))
	}
	if !s.real {
		startAdmission(t, s.Dir, s.Kube, s.Certificates)
	}
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
		check(t, dir, os.RemoveAll(dir))
	})
	return dir
}
