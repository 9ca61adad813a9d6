// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"maps"
	"net/http"
	"time"
)

// driver is Longhorn's CSI driver.
const driver = "driver.longhorn.io"

// provision makes a volume for a claim that waits for one; Kubernetes' own controller binds them.
func (p *players) provision(claim Object) error {
	if claim.Str("spec", "volumeName") != "" || claim.Terminating() || claim.Annotation("volume.kubernetes.io/storage-provisioner") != driver {
		return nil
	}
	fault := p.fault(claim)
	namespace := claim.Str("metadata", "namespace")
	if fault.FailClaims && p.first(claim, "failed") {
		_, err := p.kube.Create(Resource{"", "v1", "events"}, namespace, Object{
			"apiVersion": "v1", "kind": "Event", "metadata": Object{"generateName": claim.Name() + ".", "namespace": namespace},
			"involvedObject": Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.Name(), "namespace": namespace, "uid": claim.UID()},
			"type":           "Warning", "reason": "ProvisioningFailed", "source": Object{"component": driver},
			"message": `failed to provision volume with StorageClass "` + claim.Str("spec", "storageClassName") +
				`": rpc error: code = ResourceExhausted desc = insufficient storage`,
			"firstTimestamp": now(), "lastTimestamp": now(), "count": 1,
		})
		return err
	}
	if fault.FailClaims || fault.HoldClaims {
		return nil
	}
	name := "pvc-" + claim.UID()
	source, err := p.volumeSource(claim, name)
	if err != nil {
		return err
	}
	for _, object := range append(longhornsObjects(name), Object{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": Object{"name": name, "annotations": Object{"pv.kubernetes.io/provisioned-by": driver}},
		"spec": with(source, Object{
			"accessModes": claim.At("spec", "accessModes"), "volumeMode": claim.At("spec", "volumeMode"),
			"capacity":         Object{"storage": claim.Str("spec", "resources", "requests", "storage")},
			"storageClassName": claim.Str("spec", "storageClassName"), "persistentVolumeReclaimPolicy": "Delete",
			"claimRef": Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.Name(), "namespace": namespace, "uid": claim.UID()},
		}),
	}) {
		_, err := p.kube.Create(ResourceOf(object), object.Str("metadata", "namespace"), object)
		if err != nil && !isStatus(err, http.StatusConflict) { // it is being bound
			return err
		}
	}
	return nil
}

// volumeSource is Longhorn's, of which nobody mounts anything, or a device of the host that is real.
func (p *players) volumeSource(claim Object, name string) (Object, error) {
	p.lock.Lock()
	host, machines := p.realHost, p.machines[claim.Str("metadata", "namespace")]
	p.lock.Unlock()
	if host == nil || machines == nil {
		return Object{"csi": Object{"driver": driver, "fsType": "ext4", "volumeHandle": name}}, nil
	}
	device, err := host.makeDisk(claim, machines.image)
	return Object{
		"local": Object{"path": device},
		"nodeAffinity": Object{"required": Object{"nodeSelectorTerms": []Object{{"matchExpressions": []Object{
			{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{host.Name}},
		}}}}},
	}, err
}

// with adds an object's fields to another one.
func with(fields, object Object) Object {
	maps.Copy(object, fields)
	return object
}

// longhornsObjects are by what Harvester knows a volume of Longhorn: before a snapshot, and when it is restored.
func longhornsObjects(volume string) []Object {
	metadata := Object{"name": volume, "namespace": longhornNamespace, "labels": Object{"longhornvolume": volume}}
	return []Object{
		{"apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": metadata, "spec": Object{"dataEngine": "v1"}},
		{"apiVersion": "longhorn.io/v1beta2", "kind": "Engine", "metadata": metadata, "spec": Object{"dataEngine": "v1", "volumeName": volume}},
	}
}

// reclaim deletes the volumes whose claims are gone.
func (p *players) reclaim() error {
	all, err := p.kube.ListCached(volumes)
	for _, volume := range all {
		if volume.Str("status", "phase") == "Released" && !volume.Terminating() {
			for _, object := range longhornsObjects(volume.Name()) {
				err = errors.Join(err, p.kube.Delete(ResourceOf(object), longhornNamespace, object.Name()))
			}
			if err = errors.Join(err, p.kube.Delete(volumes, "", volume.Name())); err != nil {
				return err
			}
		}
	}
	return err
}

// populate plays CDI: a DataVolume has a claim, and has succeeded once that is bound.
func (p *players) populate(volume Object) error {
	namespace, name := volume.Str("metadata", "namespace"), volume.Name()
	if volume.Str("status", "phase") == "Succeeded" || volume.Terminating() {
		return nil
	}
	if p.claim(namespace, name) == nil {
		spec := volume.Obj("spec", "storage")
		if spec == nil {
			spec = volume.Obj("spec", "pvc")
		}
		// As Longhorn's storage profile has them.
		for key, value := range (Object{"accessModes": []string{"ReadWriteMany"}, "volumeMode": "Block"}) {
			if spec.At(key) == nil {
				spec[key] = value
			}
		}
		annotations := Object{"cdi.kubevirt.io/createdForDataVolume": volume.UID()}
		for key, value := range volume.Obj("metadata", "annotations") {
			annotations[key] = value
		}
		_, err := p.kube.Create(Claims, namespace, Object{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim",
			"metadata": Object{
				"name": name, "namespace": namespace, "labels": Object{"app": "containerized-data-importer"},
				"annotations": annotations,
				"ownerReferences": []Object{{
					"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": name, "uid": volume.UID(), "controller": true, "blockOwnerDeletion": true,
				}},
			},
			"spec": spec,
		})
		return err
	}
	if !p.isBound(namespace, name) {
		return nil
	}
	_, err := p.kube.Patch(DataVolumes, namespace, name, Object{"status": Object{"phase": "Succeeded", "progress": "100.0%", "claimName": name}}, "status")
	return err
}

// How long Longhorn takes for the file of an image: Harvester looks at it only once it has noted that it asked for it.
const imageDownload = 3 * time.Second

// store plays Longhorn: the file of a backing image is there after a while.
func (p *players) store(image Object) error {
	if len(image.Obj("status", "diskFileStatusMap")) > 0 || image.Terminating() || p.age(image, "download") < imageDownload {
		return nil
	}
	_, err := p.kube.Patch(backingImages, image.Str("metadata", "namespace"), image.Name(), Object{"status": Object{
		"uuid": image.UID()[:8], "size": 1 << 20, "virtualSize": 1 << 20,
		"diskFileStatusMap": Object{"disk-0": Object{"state": "ready", "progress": 100, "message": ""}},
	}}, "status")
	return err
}

// snapshot plays the controller of snapshots and Longhorn's: one of a volume is there at once.
func (p *players) snapshot(snapshot Object) error {
	if snapshot.Bool("status", "readyToUse") || snapshot.Terminating() {
		return nil
	}
	_, err := p.kube.Patch(volumeSnapshots, snapshot.Str("metadata", "namespace"), snapshot.Name(), Object{"status": Object{
		"readyToUse": true, "creationTime": now(), "boundVolumeSnapshotContentName": "snapcontent-" + snapshot.UID(), "restoreSize": "1Gi",
	}}, "status")
	return err
}

var backingImages = Resource{"longhorn.io", "v1beta2", "backingimages"}

var volumes = Resource{"", "v1", "persistentvolumes"}

var volumeSnapshots = Resource{"snapshot.storage.k8s.io", "v1", "volumesnapshots"}

const longhornNamespace = "longhorn-system"
