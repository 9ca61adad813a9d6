// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"
	"time"
)

// Migrate asks KubeVirt to move a VM to another host, as Harvester's action does; it does not wait.
func (s *Stack) Migrate(t testing.TB, vm string) {
	t.Helper()
	check(t, "migration of "+vm, s.Kube.Apply([]Object{{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
		"metadata": Object{"generateName": vm + "-", "namespace": s.Namespace},
		"spec":     Object{"vmiName": vm},
	}}))
}

// migrate plays the virt-handlers of a live migration's source and target, once KubeVirt's migration
// controller has given it a target. moving is true while one is under way.
func (p *players) migrate(instance Object) (moving bool, err error) {
	state := instance.Obj("status", "migrationState")
	target := state.Str("targetNode")
	if target == "" || state.Bool("completed") || state.Bool("failed") {
		return false, nil
	}
	step := "migration " + state.Str("migrationUid")
	change, status, labels := Object{}, Object{}, Object{}
	switch {
	case state.Str("targetNodeAddress") == "": // the target listens
		change["targetNodeAddress"], change["targetDirectMigrationNodePorts"] = hostAddress(target), Object{"49152": 0}
	case state.Str("startTimestamp") == "": // the source begins
		if p.age(instance, step+" begins") < 500*time.Millisecond {
			return true, nil
		}
		change["startTimestamp"] = now()
	case p.age(instance, step+" copies") < 2*time.Second || p.fault(instance).HoldMoves:
		return true, nil
	default: // the guest runs at its target
		change["completed"], change["endTimestamp"] = true, now()
		change["targetNodeDomainDetected"], change["targetNodeDomainReadyTimestamp"] = true, now()
		status["nodeName"], labels["kubevirt.io/nodeName"] = target, target
		if instance.Str("status", "evacuationNodeName") != "" {
			status["evacuationNodeName"] = nil
		}
		p.log.Printf("%s: moves to %s", instance.Name(), target)
	}
	status["migrationState"] = change
	body := at(instance, Object{"status": status})
	if len(labels) > 0 {
		body["metadata"].(Object)["labels"] = labels
	}
	_, err = p.handler.Patch(Instances, instance.Str("metadata", "namespace"), instance.Name(), body)
	return true, err
}
