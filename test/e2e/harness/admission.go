// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const validatorName = "virtualmachine-validator.kubevirt.io"

// startAdmission runs KubeVirt's own admission code for virtual machines and makes
// the API server ask it, with the rules of KubeVirt's operator
// (kubevirt/kubevirt:pkg/virt-operator/resource/generate/components/webhooks.go).
func startAdmission(t testing.TB, dir string, admin *Kube, certificates *Certificates) {
	t.Helper()
	address := fmt.Sprintf("%s:%d", loopback, freePort(t))
	process := start(t, dir, "kubevirt-admission", exec.Command(part(t, "kubevirt", "kubevirt-admission"),
		"-listen", address, "-cert", certificates.CertFile, "-key", certificates.KeyFile))
	Eventually(t, time.Minute, "KubeVirt's admission listens", func() error {
		return answersOK(process, admin.HTTP, "https://"+address+"/healthz")
	})
	authority := base64.StdEncoding.EncodeToString(must[[]byte](t, certificates.CAFile)(os.ReadFile(certificates.CAFile)))
	configuration := func(kind, name, webhook, path string) Object {
		return Object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": Object{"name": name},
			"webhooks": []Object{{
				"name": webhook, "admissionReviewVersions": []string{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
				"timeoutSeconds": 10, "clientConfig": Object{"url": "https://" + address + path, "caBundle": authority},
				"rules": []Object{{
					"operations": []string{"CREATE", "UPDATE"}, "apiGroups": []string{VirtualMachines.Group},
					"apiVersions": []string{"v1", "v1alpha3"}, "resources": []string{VirtualMachines.Plural},
				}},
			}},
		}
	}
	check(t, "webhooks", admin.Apply([]Object{
		configuration("MutatingWebhookConfiguration", "virt-api-mutator", "virtualmachines-mutator.kubevirt.io", "/virtualmachines-mutate"),
		configuration("ValidatingWebhookConfiguration", "virt-api-validator", validatorName, "/virtualmachines-validate"),
	}))
	Eventually(t, time.Minute, "the API server asks KubeVirt's admission", func() error { return asksAdmission(admin) })
}

// asksAdmission returns nil if both webhooks take part: the API server learns of
// their configurations only after it has stored them.
func asksAdmission(admin *Kube) error {
	good := SampleVM("admission")
	response, body, err := admin.Post(VirtualMachines, Namespace, good, true)
	if err != nil {
		return err
	}
	stored, err := decodeObject(body)
	if err != nil {
		return err
	}
	if stored.Str("spec", "template", "spec", "architecture") == "" {
		return fmt.Errorf("no defaults are set: %d %s", response.StatusCode, body)
	}
	bad := SampleVM("admission")
	bad["spec"].(Object)["runStrategy"] = "Sometimes"
	response, body, err = admin.Post(VirtualMachines, Namespace, bad, true)
	if err == nil && !strings.Contains(string(body), validatorName) {
		err = fmt.Errorf("a bad VM is not refused: %d %s", response.StatusCode, body)
	}
	return err
}
