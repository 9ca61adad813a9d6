// SPDX-License-Identifier: Apache-2.0

// Command kubevirt-admission answers the API server's questions about virtual
// machines with KubeVirt's own code: the mutator that sets defaults and the
// admitter that refuses what cannot run. It registers nothing: a webhook
// configuration with its URL does.
//
// Of the cluster it knows only Harvester's configuration of KubeVirt. A VM that
// refers to an instance type or to a preference makes it fail, because these would
// be read from the API server.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"kubevirt.io/kubevirt/pkg/virt-api/webhooks"
	mutating "kubevirt.io/kubevirt/pkg/virt-api/webhooks/mutating-webhook"
	validating "kubevirt.io/kubevirt/pkg/virt-api/webhooks/validating-webhook"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

func main() {
	address := flag.String("listen", "", "host:port to listen on")
	certificate := flag.String("cert", "", "PEM file with the server's certificate")
	key := flag.String("key", "", "PEM file with its key")
	flag.Parse()
	if err := serve(*address, *certificate, *key); err != nil {
		fmt.Fprintln(os.Stderr, "kubevirt-admission:", err)
		os.Exit(1)
	}
}

func serve(address, certificate, key string) error {
	if address == "" || certificate == "" || key == "" || flag.NArg() > 0 {
		return errors.New("usage: kubevirt-admission -listen HOST:PORT -cert FILE -key FILE")
	}
	config, err := clusterConfig()
	if err != nil {
		return err
	}
	informers := &webhooks.Informers{DataVolumeInformer: emptyInformer(&cdi.DataVolume{})}
	mux := http.NewServeMux()
	mux.HandleFunc(components.VMMutatePath, func(w http.ResponseWriter, r *http.Request) {
		mutating.ServeVMs(w, r, config, nil)
	})
	mux.HandleFunc(components.VMValidatePath, func(w http.ResponseWriter, r *http.Request) {
		validating.ServeVMs(w, r, config, nil, informers)
	})
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServeTLS(certificate, key)
}

// clusterConfig is what Harvester writes into its KubeVirt object
// (harvester/harvester:deploy/charts/harvester/values.yaml).
func clusterConfig() (*virtconfig.ClusterConfig, error) {
	const namespace = "harvester-system"
	yes := true
	object := &kubevirt.KubeVirt{
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt", Namespace: namespace, ResourceVersion: "1"},
		Spec: kubevirt.KubeVirtSpec{Configuration: kubevirt.KubeVirtConfiguration{
			VMStateStorageClass: "vmstate-persistence",
			DeveloperConfiguration: &kubevirt.DeveloperConfiguration{FeatureGates: []string{
				"LiveMigration", "HotplugVolumes", "HostDevices", "GPU", "CPUManager", "VMPersistentState",
				"VMLiveUpdateFeatures", "ExpandDisks",
			}},
			NetworkConfiguration: &kubevirt.NetworkConfiguration{
				NetworkInterface: "bridge", PermitBridgeInterfaceOnPodNetwork: &yes, DeprecatedPermitSlirpInterface: &yes,
			},
		}},
		Status: kubevirt.KubeVirtStatus{Phase: kubevirt.KubeVirtPhaseDeployed, DefaultArchitecture: "amd64"},
	}
	informer := emptyInformer(&kubevirt.KubeVirt{})
	if err := informer.GetStore().Add(object); err != nil {
		return nil, err
	}
	config, err := virtconfig.NewClusterConfig(emptyInformer(&extv1.CustomResourceDefinition{}), informer, namespace)
	if err != nil {
		return nil, err
	}
	if config.GetConfig().VMStateStorageClass != object.Spec.Configuration.VMStateStorageClass {
		return nil, errors.New("KubeVirt refuses its configuration; its log says why")
	}
	return config, nil
}

// emptyInformer is never run: only its store is read.
func emptyInformer(kind k8sruntime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{}, kind, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}
