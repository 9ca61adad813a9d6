// SPDX-License-Identifier: Apache-2.0

// Command kubevirt-crds prints the CustomResourceDefinitions of the virtual
// machine types exactly as KubeVirt's operator would install them. It is a
// program and not a package of the tests, so that KubeVirt's dependencies are
// compiled once and never meet those of the tests.
package main

import (
	"fmt"
	"os"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/yaml"
)

func main() {
	makers := []func() (*extv1.CustomResourceDefinition, error){
		components.NewVirtualMachineCrd,
		components.NewVirtualMachineInstanceCrd,
		components.NewVirtualMachineInstanceMigrationCrd,
	}
	for _, newCRD := range makers {
		crd, err := newCRD()
		if err != nil {
			fail(err)
		}
		// The operator posts the definition without a status: the API server owns it.
		crd.Status = extv1.CustomResourceDefinitionStatus{}
		out, err := yaml.Marshal(crd)
		if err != nil {
			fail(err)
		}
		fmt.Printf("---\n%s", out)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubevirt-crds:", err)
	os.Exit(1)
}
