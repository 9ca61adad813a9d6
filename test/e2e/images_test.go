// SPDX-License-Identifier: Apache-2.0

// VMs of images that Harvester has imported, and of every kind of hardware.

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// The images are downloaded by Harvester, with each of its backends (harvester/harvester:pkg/image); Longhorn and
// CDI, which would store them, are played.
func TestAPoolGrowsFromImagesOfBothBackendsAndLeavesNoVolume(t *testing.T) {
	s := harness.Start(t)
	for _, backend := range []string{"backingimage", "cdi"} {
		t.Log(backend)
		image := importImage(t, s, backend)
		s.PolicyKeys = map[string]string{"image": "default/" + image, "disk_size": "10Gi"}
		agent := s.StartAgent(t)
		s.Reach(t, 2*time.Minute, 2)
		class := must1(s.Kube.Get(harness.Images, "default", image))(t).Str("status", "storageClassName")
		for _, claim := range must1(s.Kube.List(harness.Claims, s.Namespace, ""))(t) {
			if got := claim.Str("spec", "storageClassName"); got != class {
				t.Errorf("%s is of class %s, want the image's %s", claim.Name(), got, class)
			}
		}
		if made := len(must1(s.Kube.List(harness.DataVolumes, s.Namespace, ""))(t)); (made == 2) != (backend == "cdi") {
			t.Errorf("%d DataVolumes with backend %s", made, backend)
		}
		s.Reach(t, 2*time.Minute, 0)
		if left := must1(s.Kube.List(harness.DataVolumes, s.Namespace, ""))(t); len(left) > 0 {
			t.Errorf("%d DataVolumes are left", len(left))
		}
		agent.StopInOrder(t)
	}
	checkRequests(t, s)
}

// importImage lets Harvester download an image, and returns its name.
func importImage(t *testing.T, s *harness.Stack, backend string) string {
	t.Helper()
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "image.raw", time.Time{}, bytes.NewReader(make([]byte, 1<<20)))
	}))
	t.Cleanup(files.Close)
	image := backend + "-" + s.Namespace
	t.Cleanup(func() {
		if err := s.Kube.Delete(harness.Images, "default", image); err != nil {
			t.Error(err)
		}
	})
	if err := s.Kube.Apply([]harness.Object{{
		"apiVersion": "harvesterhci.io/v1beta1", "kind": "VirtualMachineImage",
		"metadata": harness.Object{"name": image, "namespace": "default", "annotations": harness.Object{"harvesterhci.io/storageClassName": "harvester-longhorn"}},
		"spec": harness.Object{
			"displayName": image, "sourceType": "download", "url": files.URL + "/image.raw", "retry": 3,
			"backend": backend, "targetStorageClassName": "harvester-longhorn",
		},
	}}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, image+" is imported", func() error {
		stored, err := s.Kube.Get(harness.Images, "default", image)
		if err == nil && !harness.HasCondition(stored, "Imported") {
			err = fmt.Errorf("it is not: %v", stored.At("status"))
		}
		return err
	})
	return image
}

// Each pool's VM must pass both admissions, get a host, and leave nothing.
func TestVMsOfEveryHardwareStartAndLeaveNothing(t *testing.T) {
	s := harness.Start(t)
	for _, kind := range []struct {
		name   string
		keys   map[string]string
		claims int                              // of a VM
		has    func(domain harness.Object) bool // what its instance was made with
	}{
		{
			"UEFI with secure boot, a TPM, and data disks", map[string]string{
				"firmware": "uefi-secure", "tpm": "true", "data_disks": "20Gi,10Gi@fast",
			},
			3, func(domain harness.Object) bool {
				return domain.Bool("firmware", "bootloader", "efi", "secureBoot") && domain.At("devices", "tpm") != nil && len(domain.List("devices", "disks")) == 4
			},
		},
		{
			"GPUs", map[string]string{"gpus": "nvidia.com/GA102GL_A10:1", "host_devices": "intel.com/X710:1"},
			1, func(domain harness.Object) bool {
				return len(domain.List("devices", "gpus"))+len(domain.List("devices", "hostDevices")) == 2
			},
		},
		{
			"zones", map[string]string{"availability_zones": "zone-0,zone-2", "host_spread": "required"},
			1, func(harness.Object) bool { return true },
		},
	} {
		t.Log(kind.name)
		s.PolicyKeys = kind.keys
		agent := s.StartAgent(t)
		s.Metrics.Want(2)
		harness.Eventually(t, 2*time.Minute, "two VMs are ready", func() error {
			ready := 0
			for _, vm := range s.VMs(t) {
				if harness.WasReady(vm) {
					ready++
				}
			}
			if ready != 2 {
				return errors.New("not yet")
			}
			return nil
		})
		hosts := map[string]bool{}
		for _, instance := range must1(s.Kube.List(harness.Instances, s.Namespace, ""))(t) {
			hosts[instance.Str("status", "nodeName")] = true
			if domain := instance.Obj("spec", "domain"); !kind.has(domain) {
				t.Errorf("%s: %s was made with %v", kind.name, instance.Name(), domain)
			}
		}
		if claims := must1(s.Kube.List(harness.Claims, s.Namespace, ""))(t); len(claims) != 2*kind.claims {
			t.Errorf("%s: %d claims, want %d for each of two VMs", kind.name, len(claims), kind.claims)
		}
		if kind.name == "zones" && (len(hosts) != 2 || hosts[harness.Host(1)]) {
			t.Errorf("the VMs are on %v, want one on each host of the zones", hosts)
		}
		s.Reach(t, 2*time.Minute, 0)
		agent.StopInOrder(t)
	}
	checkRequests(t, s)
}
