// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Write is one kind of write by one program of the cluster.
type Write struct {
	Account   string // of the program: "harvester", "kubevirt-controller"
	Operation string // CREATE, UPDATE or DELETE
	Resource  Resource
}

const heldMessage = "a test holds this write"

// Hold makes the API server refuse a write in the stack's namespace, until it is released: who kills the program
// that tries it kills it between the write before and this one.
func (s *Stack) Hold(t testing.TB, write Write) (release func()) {
	t.Helper()
	const group = "admissionregistration.k8s.io"
	policies := Resource{group, "v1", "validatingadmissionpolicies"}
	bindings := Resource{group, "v1", "validatingadmissionpolicybindings"}
	name := fmt.Sprintf("%s-holds-%s", s.Namespace, strings.ReplaceAll(write.Resource.Plural, "/", "-"))
	rule := func(r Resource, operation string) Object {
		return Object{
			"apiGroups": []string{r.Group}, "apiVersions": []string{"*"}, "operations": []string{operation}, "resources": []string{r.Plural},
		}
	}
	trial := Resource{"", "v1", "configmaps"}
	policy := Object{
		"apiVersion": group + "/v1", "kind": "ValidatingAdmissionPolicy", "metadata": Object{"name": name},
		"spec": Object{
			"matchConstraints": Object{"resourceRules": []Object{rule(write.Resource, write.Operation), rule(trial, "CREATE")}},
			"validations": []Object{{
				"expression": fmt.Sprintf("request.userInfo.username != 'system:serviceaccount:%s:%s'", systemNamespace, write.Account),
				"message":    heldMessage,
			}},
		},
	}
	binding := Object{
		"apiVersion": group + "/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": Object{"name": name},
		"spec": Object{
			"policyName": name, "validationActions": []string{"Deny"},
			"matchResources": Object{"namespaceSelector": Object{"matchLabels": Object{"kubernetes.io/metadata.name": s.Namespace}}},
		},
	}
	_, err := s.Kube.Create(policies, "", policy)
	check(t, "hold "+name, err)
	_, err = s.Kube.Create(bindings, "", binding)
	check(t, "hold "+name, err)
	release = func() {
		check(t, "release "+name, errors.Join(s.Kube.Delete(bindings, "", name), s.Kube.Delete(policies, "", name)))
	}

	// The API server follows its policies with a delay.
	token := must[string](t, write.Account)(s.Kube.TokenFor(systemNamespace, write.Account))
	as := &Kube{URL: s.Kube.URL, Token: token, HTTP: s.Kube.HTTP}
	object := Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": "trial", "namespace": s.Namespace}}
	Eventually(t, time.Minute, write.Account+" is held", func() error {
		response, body, err := as.Post(trial, s.Namespace, object, true)
		if err == nil && (response.StatusCode < http.StatusBadRequest || !strings.Contains(string(body), heldMessage)) {
			err = fmt.Errorf("it is not: %d %s", response.StatusCode, body)
		}
		return err
	})
	return release
}
