// SPDX-License-Identifier: Apache-2.0

// Command kubevirt-objects prints, as a YAML stream, what KubeVirt's operator would install
// beside its programs: every CustomResourceDefinition, virt-api's webhook configurations and its
// APIServices. They lack what the operator knows only at run time: certificates and ports.
package main

import (
	"fmt"
	"os"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: kubevirt-objects NAMESPACE"))
	}
	namespace := os.Args[1]
	for _, newDefinition := range []func() (*extv1.CustomResourceDefinition, error){
		components.NewVirtualMachineCrd, components.NewVirtualMachineInstanceCrd, components.NewVirtualMachineInstanceMigrationCrd,
		components.NewPresetCrd, components.NewReplicaSetCrd, components.NewVirtualMachinePoolCrd, components.NewKubeVirtCrd,
		components.NewVirtualMachineSnapshotCrd, components.NewVirtualMachineSnapshotContentCrd, components.NewVirtualMachineRestoreCrd,
		components.NewVirtualMachineExportCrd, components.NewVirtualMachineCloneCrd, components.NewMigrationPolicyCrd,
		components.NewVirtualMachineInstancetypeCrd, components.NewVirtualMachineClusterInstancetypeCrd,
		components.NewVirtualMachinePreferenceCrd, components.NewVirtualMachineClusterPreferenceCrd,
	} {
		definition, err := newDefinition()
		if err != nil {
			fail(err)
		}
		definition.Status = extv1.CustomResourceDefinitionStatus{} // the API server's
		show(definition)
	}
	mutating := components.NewVirtAPIMutatingWebhookConfiguration(namespace)
	mutating.APIVersion, mutating.Kind = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
	show(mutating)
	validating := components.NewVirtAPIValidatingWebhookConfiguration(namespace)
	validating.APIVersion, validating.Kind = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
	show(validating)
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		show(service)
	}
}

func show(object any) {
	out, err := yaml.Marshal(object)
	if err != nil {
		fail(err)
	}
	fmt.Printf("---\n%s", out)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubevirt-objects:", err)
	os.Exit(1)
}
