// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// players do what needs a machine in a Harvester cluster: kubelet (kubelet.go), virt-handler and
// virt-launcher (virthandler.go, migration.go) of each host (hosts.go), the CSI provisioner, CDI and Longhorn
// (provisioner.go). They write what those would write and decide nothing: which host a VM gets, when it
// is made and what becomes of it is up to Kubernetes', KubeVirt's and Harvester's own programs.
//
// One goroutine looks at all objects in each round; each step is based on what is stored.
type players struct {
	kube    *Kube // as administrator
	handler *Kube // as virt-handler: virt-api lets only KubeVirt's own accounts change an instance
	log     *log.Logger

	// Only the goroutine's own.
	since   map[string]time.Time // when a step of an object was first seen, by uid and step
	running map[string]*Machine  // by the instance's uid
	asked   map[string]bool      // instances whose guest is shutting down
	logged  map[string]string    // the last problem of each object
	seen    world

	lock     sync.Mutex
	machines map[string]*Machines // by namespace
	faults   map[string]Faults    // by namespace
	down     map[string]bool      // hosts
	paused   map[string]bool      // by the instance's uid
	realHost *RealHost            // the host that has the volumes, if there is one
}

// world is what a round is based on.
type world struct {
	pods, instances, claims              []Object
	dataVolumes, backingFiles, snapshots []Object
	secrets                              map[string]bool // while a pod is pending
}

// Faults are what may go wrong with the machines and the storage of a cluster.
type Faults struct {
	HoldClaims bool // no volume is provisioned, as while an image is cloned
	FailClaims bool // the provisioner says why it cannot
	ImagePull  bool // no launcher's image can be pulled
	StuckPods  bool // the containers of new pods are not created
	HoldMoves  bool // no live migration ends
	BoundGuest bool // new guests have a device of their host, so that they cannot migrate
	HungGuests bool // new guests hang before they start Nomad
}

// Fail sets what goes wrong with the stack's VMs from now on.
func (s *Stack) Fail(faults Faults) {
	s.players.lock.Lock()
	defer s.players.lock.Unlock()
	s.players.faults[s.Namespace] = faults
}

func (p *players) fault(o Object) Faults {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.faults[o.Str("metadata", "namespace")]
}

// addMachines says where the guests of a namespace run.
func (p *players) addMachines(namespace string, machines *Machines) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.machines[namespace] = machines
}

// isPlayed returns whether a host is one that the players are.
func isPlayed(host string) bool { return slices.Contains(HostNames(), host) }

func (p *players) setRealHost(h *RealHost) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.realHost = h
}

// forget ends what goes wrong with a namespace's VMs; none of them boots any more.
func (p *players) forget(namespace string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.machines, namespace)
	delete(p.faults, namespace)
}

func (p *players) machinesOf(namespace string) *Machines {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.machines[namespace]
}

func startPlayers(t testing.TB, c *Cluster) *players {
	t.Helper()
	token, _ := c.account(t, "kubevirt-handler")
	path := filepath.Join(c.dir, "players.log")
	file := must[*os.File](t, path)(os.Create(path))
	p := &players{
		kube: c.Kube, log: log.New(file, "", log.Ltime|log.Lmicroseconds),
		handler: &Kube{URL: c.Kube.URL, Token: string(must[[]byte](t, token)(os.ReadFile(token))), HTTP: c.Kube.HTTP},
		since:   map[string]time.Time{}, running: map[string]*Machine{}, asked: map[string]bool{}, logged: map[string]string{},
		machines: map[string]*Machines{}, faults: map[string]Faults{}, down: map[string]bool{}, paused: map[string]bool{},
	}
	p.addHosts(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			p.round()
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		file.Close()
	})
	return p
}

func (p *players) round() {
	for _, host := range HostNames() {
		p.note(host, p.beat(host))
	}
	var err error
	if p.seen, err = p.look(); err != nil {
		p.note("lists", err)
		return
	}
	for _, claim := range p.seen.claims {
		p.note("claim "+claim.Name(), p.provision(claim))
	}
	for _, volume := range p.seen.dataVolumes {
		p.note("data volume "+volume.Name(), p.populate(volume))
	}
	for _, image := range p.seen.backingFiles {
		p.note("backing image "+image.Name(), p.store(image))
	}
	for _, snapshot := range p.seen.snapshots {
		p.note("snapshot "+snapshot.Name(), p.snapshot(snapshot))
	}
	p.note("volumes", p.reclaim())
	for _, pod := range p.seen.pods {
		p.note("pod "+pod.Name(), p.kubelet(pod))
	}
	for _, instance := range p.seen.instances {
		p.note("instance "+instance.Name(), p.virtHandler(instance))
	}
}

func (p *players) look() (w world, err error) {
	for _, list := range []struct {
		of   Resource
		into *[]Object
	}{
		{Pods, &w.pods}, {Instances, &w.instances}, {Claims, &w.claims},
		{DataVolumes, &w.dataVolumes}, {backingImages, &w.backingFiles},
		{volumeSnapshots, &w.snapshots},
	} {
		if *list.into, err = p.kube.ListCached(list.of); err != nil {
			return w, err
		}
	}
	if !slices.ContainsFunc(w.pods, func(pod Object) bool { return pod.Str("status", "phase") == "Pending" }) {
		return w, nil
	}
	secrets, err := p.kube.ListCached(Secrets)
	w.secrets = map[string]bool{}
	for _, secret := range secrets {
		w.secrets[secret.Str("metadata", "namespace")+"/"+secret.Name()] = true
	}
	return w, err
}

// age returns for how long an object is known to be at this step.
func (p *players) age(o Object, step string) time.Duration {
	key := o.UID() + " " + step
	if _, known := p.since[key]; !known {
		p.since[key] = time.Now()
	}
	return time.Since(p.since[key])
}

// first returns whether it is called for the first time for this step of an object.
func (p *players) first(o Object, step string) bool {
	_, known := p.since[o.UID()+" "+step]
	p.age(o, step)
	return !known
}

// note logs a problem once. A conflict, or an object that is gone, is dealt with in the next round.
func (p *players) note(name string, err error) {
	if isStatus(err, http.StatusConflict) || isStatus(err, http.StatusNotFound) {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && p.logged[name] != text {
		p.log.Printf("%s: %s", name, text)
	}
	p.logged[name] = text
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// condition is one of a status, with all the timestamps that KubeVirt's and Kubernetes' kinds have: without
// them virt-controller's JSON patches of what it read do not apply.
func condition(kind string, status bool, reason, message string) Object {
	text := "False"
	if status {
		text = "True"
	}
	c := Object{"type": kind, "status": text, "lastProbeTime": now(), "lastTransitionTime": now()}
	if reason != "" {
		c["reason"], c["message"] = reason, message
	}
	return c
}

// withConditions returns an object's conditions with some replaced or added; changed is false if all of
// them were there.
func withConditions(o Object, wanted ...Object) (all []Object, changed bool) {
	all = o.List("status", "conditions")
	for _, want := range wanted {
		found := false
		for i, is := range all {
			if is.Str("type") != want.Str("type") {
				continue
			}
			found = true
			if is.Str("status") != want.Str("status") || is.Str("reason") != want.Str("reason") {
				all[i], changed = want, true
			}
		}
		if !found {
			all, changed = append(all, want), true
		}
	}
	return all, changed
}

// at makes a change conditional on nobody else's having written the object since it was read.
func at(o Object, change Object) Object {
	change["metadata"] = Object{"resourceVersion": o.Str("metadata", "resourceVersion")}
	return change
}
