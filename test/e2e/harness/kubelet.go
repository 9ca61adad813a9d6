// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net/http"
	"time"
)

// How long it takes until a pod's containers run, and until a pod whose containers have ended is gone.
const (
	podStart = time.Second
	podGone  = 300 * time.Millisecond
)

const pullMessage = `rpc error: code = NotFound desc = failed to pull and unpack image: failed to resolve reference: not found`

// kubelet advances a pod that has a host by one step.
func (p *players) kubelet(pod Object) error {
	host, phase := pod.Str("spec", "nodeName"), pod.Str("status", "phase")
	if !isPlayed(host) || p.isDown(host) {
		return nil
	}
	fault := p.fault(pod)
	ended := phase == "Succeeded" || phase == "Failed"
	switch {
	case pod.Terminating():
		return p.endPod(pod, ended)
	case ended:
		return nil
	case phase == "Running":
		return p.superviseLauncher(pod)
	case fault.ImagePull:
		reason := "ErrImagePull"
		if p.age(pod, "pull") > 5*time.Second {
			reason = "ImagePullBackOff"
		}
		return p.waiting(pod, reason, pullMessage)
	case fault.StuckPods:
		return p.waiting(pod, "ContainerCreating", "")
	}
	if missing := p.missing(pod); missing != "" {
		if p.first(pod, "mount "+missing) {
			p.event(pod, "FailedMount", "MountVolume.SetUp failed for volume: "+missing)
		}
		return p.waiting(pod, "ContainerCreating", "")
	}
	if p.age(pod, "start") < podStart {
		return p.waiting(pod, "ContainerCreating", "")
	}
	return p.podStatus(pod, "Running", true, Object{"running": Object{"startedAt": now()}})
}

// superviseLauncher ends a launcher whose guest has ended or has moved, and tells whether it is ready.
func (p *players) superviseLauncher(pod Object) error {
	if instance := p.instanceOf(pod); instance != nil {
		migration := instance.Obj("status", "migrationState")
		switch phase := instance.Str("status", "phase"); {
		case phase == "Succeeded":
			return p.terminated(pod, 0)
		case phase == "Failed":
			return p.terminated(pod, 1)
		case migration.Bool("completed") && migration.Str("sourcePod") == pod.Name():
			return p.terminated(pod, 0)
		}
	}
	conditions, changed := withConditions(pod, condition("Ready", gatesOpen(pod), "", ""))
	if !changed {
		return nil
	}
	_, err := p.kube.Patch(Pods, pod.Str("metadata", "namespace"), pod.Name(), at(pod, Object{"status": Object{"conditions": conditions}}), "status")
	return err
}

// endPod ends a deleted pod's containers and removes it then. A launcher first asks its guest to shut down.
func (p *players) endPod(pod Object, ended bool) error {
	namespace := pod.Str("metadata", "namespace")
	if instance := p.instanceOf(pod); instance != nil && instance.Str("status", "phase") == "Running" &&
		instance.Str("status", "nodeName") == pod.Str("spec", "nodeName") && !instance.Terminating() {
		return p.shutDown(instance)
	}
	if !ended && pod.Str("status", "phase") == "Running" {
		if instance := p.instanceOf(pod); instance != nil && instance.Str("status", "phase") == "Running" &&
			instance.Str("status", "nodeName") == pod.Str("spec", "nodeName") {
			return nil // its guest shuts down
		}
		return p.terminated(pod, 0)
	}
	if p.age(pod, "gone") < podGone {
		return nil
	}
	_, err := p.kube.Do(http.MethodDelete, Pods.Path(namespace, pod.Name()), nil, jsonContent, Object{
		"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": Object{"uid": pod.UID()},
	})
	return err
}

// missing returns what a pod mounts and is not there yet.
func (p *players) missing(pod Object) string {
	namespace := pod.Str("metadata", "namespace")
	for _, volume := range pod.List("spec", "volumes") {
		if secret := volume.Str("secret", "secretName"); secret != "" && !volume.Bool("secret", "optional") && !p.seen.secrets[namespace+"/"+secret] {
			return fmt.Sprintf("secret %q not found", secret)
		}
		if claim := volume.Str("persistentVolumeClaim", "claimName"); claim != "" && !p.isBound(namespace, claim) {
			return fmt.Sprintf("claim %q is not bound", claim)
		}
	}
	return ""
}

func (p *players) isBound(namespace, name string) bool {
	return p.claim(namespace, name).Str("status", "phase") == "Bound"
}

// claim returns nil if there is none of that name.
func (p *players) claim(namespace, name string) Object {
	for _, claim := range p.seen.claims {
		if claim.Name() == name && claim.Str("metadata", "namespace") == namespace {
			return claim
		}
	}
	return nil
}

// instanceOf returns the instance whose launcher a pod is, or nil.
func (p *players) instanceOf(pod Object) Object {
	if pod.Str("metadata", "labels", "kubevirt.io") != "virt-launcher" {
		return nil
	}
	for _, owner := range pod.List("metadata", "ownerReferences") {
		for _, instance := range p.seen.instances {
			if owner.Str("uid") == instance.UID() {
				return instance
			}
		}
	}
	return nil
}

// gatesOpen returns whether all readiness gates of a pod are.
func gatesOpen(pod Object) bool {
	for _, gate := range pod.List("spec", "readinessGates") {
		if !HasCondition(pod, gate.Str("conditionType")) {
			return false
		}
	}
	return true
}

// waiting says why a pod's containers do not run, once.
func (p *players) waiting(pod Object, reason, message string) error {
	for _, container := range pod.List("status", "containerStatuses") {
		if container.Str("state", "waiting", "reason") == reason {
			return nil
		}
	}
	state := Object{"reason": reason}
	if message != "" {
		state["message"] = message
		p.event(pod, "Failed", "Failed to pull image: "+message)
	}
	return p.podStatus(pod, "Pending", false, Object{"waiting": state})
}

func (p *players) terminated(pod Object, code int) error {
	phase, reason := "Succeeded", "Completed"
	if code != 0 {
		phase, reason = "Failed", "Error"
	}
	return p.podStatus(pod, phase, false, Object{"terminated": Object{
		"exitCode": code, "reason": reason, "startedAt": pod.Str("status", "startTime"), "finishedAt": now(),
	}})
}

// podStatus writes a pod's status, with the same state for each of its containers.
func (p *players) podStatus(pod Object, phase string, ready bool, state Object) error {
	var containers []Object
	for _, container := range pod.List("spec", "containers") {
		containers = append(containers, Object{
			"name": container.Str("name"), "image": container.Str("image"), "imageID": "sha256:" + fmt.Sprintf("%064d", 0),
			"ready": ready, "started": ready, "restartCount": 0, "state": state,
		})
	}
	conditions, _ := withConditions(pod,
		condition("PodReadyToStartContainers", phase != "Pending", "", ""), condition("Initialized", true, "", ""),
		condition("ContainersReady", ready, "", ""), condition("Ready", ready && gatesOpen(pod), "", ""))
	status := Object{
		"phase": phase, "conditions": conditions, "containerStatuses": containers,
		"hostIP": hostAddress(pod.Str("spec", "nodeName")), "startTime": pod.Str("metadata", "creationTimestamp"),
	}
	if phase == "Running" {
		address := podAddress(pod)
		status["podIP"], status["podIPs"] = address, []Object{{"ip": address}}
	}
	_, err := p.kube.Patch(Pods, pod.Str("metadata", "namespace"), pod.Name(), at(pod, Object{"status": status}), "status")
	return err
}

// podAddress is one that nobody uses, except for virt-handler's: other pods of this cluster do not talk.
func podAddress(pod Object) string {
	if pod.Str("metadata", "labels", "kubevirt.io") == handlerLabel {
		return loopback
	}
	sum := 0
	for _, c := range pod.UID() {
		sum = sum*31 + int(c)
	}
	return fmt.Sprintf("198.18.%d.%d", sum>>8&255, sum&255)
}

// event is one that kubelet reports.
func (p *players) event(pod Object, reason, message string) {
	namespace := pod.Str("metadata", "namespace")
	_, err := p.kube.Create(Resource{"", "v1", "events"}, namespace, Object{
		"apiVersion": "v1", "kind": "Event", "metadata": Object{"generateName": pod.Name() + ".", "namespace": namespace},
		"involvedObject": Object{"apiVersion": "v1", "kind": "Pod", "name": pod.Name(), "namespace": namespace, "uid": pod.UID()},
		"type":           "Warning", "reason": reason, "message": message, "source": Object{"component": "kubelet"},
		"firstTimestamp": now(), "lastTimestamp": now(), "count": 1,
	})
	p.note("event of "+pod.Name(), err)
}
