// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// SampleUID is the firmware UUID of SampleVM's machine.
const SampleUID = "5d3f0f4e-8a1c-4a53-9d0f-3b7c1a2e4d55"

// SampleVM is a complete virtual machine as the plugin creates it, for tests of
// the environment without the plugin.
func SampleVM(namespace, name string) Object {
	claim := name + "-disk-0-a1b2c"
	labels := Object{
		poolLabel: "clients", "app.kubernetes.io/managed-by": "nomad-harvester-autoscaler",
		"harvesterhci.io/creator": "nomad-harvester-autoscaler",
	}
	templates, err := json.Marshal([]Object{{
		"metadata": Object{
			"name": claim, "labels": labels,
			"annotations": Object{"harvesterhci.io/imageId": "default/image-rx7kp"},
		},
		"spec": Object{
			"accessModes": []string{"ReadWriteMany"}, "volumeMode": "Block", "storageClassName": "lh-2f0c8d6e",
			"resources": Object{"requests": Object{"storage": "20Gi"}},
		},
	}})
	if err != nil {
		panic(err) // strings and maps always encode
	}
	return Object{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": Object{
			"name": name, "namespace": namespace, "labels": labels,
			"annotations": Object{
				"nomad-harvester-autoscaler/self":               name + "/" + SampleUID,
				"nomad-harvester-autoscaler/action-id":          "01JD0000000000000000000000",
				"nomad-harvester-autoscaler/join-timeout":       "15m0s",
				"nomad-harvester-autoscaler/nodes":              `{"region":"global","node_class":"elastic","node_attribute":"unique.hostname","index":7}`,
				"harvesterhci.io/volumeClaimTemplates":          string(templates),
				"harvesterhci.io/removedPersistentVolumeClaims": claim,
			},
		},
		"spec": Object{
			"runStrategy": "RerunOnFailure",
			"template": Object{
				"metadata": Object{"labels": labels},
				"spec": Object{
					"hostname": name, "terminationGracePeriodSeconds": 120, "evictionStrategy": "LiveMigrateIfPossible",
					"domain": Object{
						"machine":   Object{"type": "q35"},
						"cpu":       Object{"cores": 2, "sockets": 1, "threads": 1},
						"resources": Object{"limits": Object{"cpu": "2", "memory": "4Gi"}},
						"firmware":  Object{"uuid": SampleUID},
						"devices": Object{
							"disks": []Object{
								{"name": "disk-0", "bootOrder": 1, "disk": Object{"bus": "virtio"}},
								{"name": "cloudinitdisk", "disk": Object{"bus": "virtio"}},
							},
							"interfaces": []Object{{"name": "nic-0", "model": "virtio", "bridge": Object{}}},
						},
					},
					"networks": []Object{{"name": "nic-0", "multus": Object{"networkName": "default/vlan10"}}},
					"volumes": []Object{
						{"name": "disk-0", "persistentVolumeClaim": Object{"claimName": claim}},
						{"name": "cloudinitdisk", "cloudInitNoCloud": Object{"secretRef": Object{"name": name + "-cloudinit"}}},
					},
				},
			},
		},
	}
}

// SampleSecret holds the user data of a SampleVM.
func SampleSecret(namespace, name string) Object {
	userData := fmt.Sprintf(`#cloud-config
write_files:
  - path: /etc/nomad.d/nomad.hcl
    content: |
      name = %q
      server {
        enabled = false
      }
      client {
        enabled    = true
        node_class = "elastic"
        meta {
          harvester_vm_uuid = %q
        }
      }
`, name, SampleUID)
	return Object{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": Object{
			"name": name + "-cloudinit", "namespace": namespace,
			"labels": Object{poolLabel: "clients", "app.kubernetes.io/managed-by": "nomad-harvester-autoscaler"},
		},
		"data": Object{"userdata": base64.StdEncoding.EncodeToString([]byte(userData))},
	}
}

// SampleClaim is a leftover claim of a deleted VM of a pool.
func SampleClaim(namespace, name, pool string) Object {
	return Object{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": Object{
			"name": name, "namespace": namespace,
			"labels": Object{poolLabel: pool, "app.kubernetes.io/managed-by": "nomad-harvester-autoscaler"},
		},
		"spec": Object{
			"accessModes": []string{"ReadWriteMany"}, "volumeMode": "Block", "storageClassName": "lh-2f0c8d6e",
			"resources": Object{"requests": Object{"storage": "20Gi"}},
		},
	}
}

// OwnedBy is the patch that makes a VM the owner of its Secret.
func OwnedBy(vm Object) Object {
	return Object{"metadata": Object{"ownerReferences": []Object{{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": vm.Name(), "uid": vm.UID(), "blockOwnerDeletion": false,
	}}}}
}

// SampleJob runs on the node of a SampleVM until it is stopped; then its poststop
// task runs for a while.
func SampleJob(node string) Object {
	task := func(name, runFor string) Object {
		return Object{
			"Name": name, "Driver": "mock_driver", "Config": Object{"run_for": runFor},
			"Resources": Object{"CPU": 20, "MemoryMB": 20},
		}
	}
	cleanup := task("cleanup", "4s")
	cleanup["Lifecycle"] = Object{"Hook": "poststop", "Sidecar": false}
	return Object{
		"ID": "probe", "Name": "probe", "Type": "batch", "Datacenters": []string{"dc1"},
		"Constraints": []Object{{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}},
		"TaskGroups":  []Object{{"Name": "group", "Count": 1, "Tasks": []Object{task("main", "24h"), cleanup}}},
	}
}
