// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Kube is a client of the Kubernetes API as one user.
type Kube struct {
	URL   string
	Token string
	HTTP  *http.Client
}

// Resource identifies a kind's resource in the API.
type Resource struct{ Group, Version, Plural string }

// The resources that the tests use.
var (
	VirtualMachines = Resource{"kubevirt.io", "v1", "virtualmachines"}
	Instances       = Resource{"kubevirt.io", "v1", "virtualmachineinstances"}
	Images          = Resource{"harvesterhci.io", "v1beta1", "virtualmachineimages"}
	DataVolumes     = Resource{"cdi.kubevirt.io", "v1beta1", "datavolumes"}
	Claims          = Resource{"", "v1", "persistentvolumeclaims"}
	Secrets         = Resource{"", "v1", "secrets"}
	Pods            = Resource{"", "v1", "pods"}
	Leases          = Resource{"coordination.k8s.io", "v1", "leases"}
	Hosts           = Resource{"", "v1", "nodes"}
	Events          = Resource{"events.k8s.io", "v1", "events"}
)

// Path returns the path of an object, or of its collection if name is empty.
func (r Resource) Path(namespace string, name ...string) string {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.Group + "/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return strings.Join(append([]string{path, r.Plural}, name...), "/")
}

// APIError is a response other than 2xx: metav1.Status if the server sent one.
type APIError struct {
	Code            int
	Reason, Message string
}

func (e *APIError) Error() string { return fmt.Sprintf("%d %s: %s", e.Code, e.Reason, e.Message) }

// isStatus returns whether an error is a response with that code.
func isStatus(err error, code int) bool {
	var apiError *APIError
	return errors.As(err, &apiError) && apiError.Code == code
}

// Request sends a request with a JSON body and returns status, header and body.
func (k *Kube) Request(method, path string, query url.Values, contentType string, body any) (*http.Response, []byte, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, nil, err
		}
		reader = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second*slow)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, k.URL+path+"?"+query.Encode(), reader)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+k.Token)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", contentType)
	response, err := k.HTTP.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response, data, err
}

// Do sends a request with a JSON body and returns the object in the response.
func (k *Kube) Do(method, path string, query url.Values, contentType string, body any) (Object, error) {
	response, data, err := k.Request(method, path, query, contentType, body)
	if err != nil {
		return nil, err
	}
	object, err := decodeObject(data)
	if response.StatusCode >= 300 {
		if err != nil {
			return nil, &APIError{Code: response.StatusCode, Message: string(data)}
		}
		return nil, &APIError{response.StatusCode, object.Str("reason"), object.Str("message")}
	}
	return object, err
}

const (
	jsonContent = "application/json"
	mergePatch  = "application/merge-patch+json"
)

// Get reads one object.
func (k *Kube) Get(r Resource, namespace, name string) (Object, error) {
	return k.Do(http.MethodGet, r.Path(namespace, name), nil, jsonContent, nil)
}

// List reads all objects of a namespace that match a label selector.
func (k *Kube) List(r Resource, namespace, selector string) ([]Object, error) {
	query := url.Values{}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	list, err := k.Do(http.MethodGet, r.Path(namespace), query, jsonContent, nil)
	return list.List("items"), err
}

// Watch sends each state of the objects of a kind in a namespace until the context ends. One that was removed comes
// once more, with the annotation GoneAnnotation.
func (k *Kube) Watch(ctx context.Context, r Resource, namespace string) (<-chan Object, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.URL+r.Path(namespace)+"?watch=1&resourceVersion=0", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+k.Token)
	response, err := k.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	states := make(chan Object, 1000)
	go func() {
		defer response.Body.Close()
		defer close(states)
		for lines := json.NewDecoder(response.Body); ; {
			var event struct {
				Type   string
				Object Object
			}
			if lines.Decode(&event) != nil || event.Type == "ERROR" {
				return
			}
			if event.Type == "DELETED" {
				event.Object.Obj("metadata")["annotations"] = Object{GoneAnnotation: "true"}
			}
			states <- event.Object
		}
	}()
	return states, nil
}

// GoneAnnotation is on the last state that Watch sends of an object.
const GoneAnnotation = "gone"

// ListCached reads all objects of a kind from the API server's memory, which may be a moment old and costs etcd
// nothing.
func (k *Kube) ListCached(r Resource) ([]Object, error) {
	list, err := k.Do(http.MethodGet, r.Path(""), url.Values{"resourceVersion": {"0"}}, jsonContent, nil)
	return list.List("items"), err
}

// Create creates an object; an unknown field is an error.
func (k *Kube) Create(r Resource, namespace string, object any) (Object, error) {
	return k.Do(http.MethodPost, r.Path(namespace), url.Values{"fieldValidation": {"Strict"}}, jsonContent, object)
}

// Patch merges a change into an object, or into its status subresource.
func (k *Kube) Patch(r Resource, namespace, name string, change any, subresource ...string) (Object, error) {
	path := r.Path(namespace, append([]string{name}, subresource...)...)
	return k.Do(http.MethodPatch, path, url.Values{"fieldValidation": {"Strict"}}, mergePatch, change)
}

// Post creates an object like Create, but returns the whole response; a trial
// stores nothing.
func (k *Kube) Post(r Resource, namespace string, object any, trial bool) (*http.Response, []byte, error) {
	query := url.Values{"fieldValidation": {"Strict"}}
	if trial {
		query.Set("dryRun", "All")
	}
	return k.Request(http.MethodPost, r.Path(namespace), query, jsonContent, object)
}

// Delete deletes an object; 404 is not an error.
func (k *Kube) Delete(r Resource, namespace, name string) error {
	_, err := k.Do(http.MethodDelete, r.Path(namespace, name), nil, jsonContent, nil)
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// TokenFor requests a token for a ServiceAccount.
func (k *Kube) TokenFor(namespace, serviceAccount string) (string, error) {
	path := Resource{"", "v1", "serviceaccounts"}.Path(namespace, serviceAccount, "token")
	reply, err := k.Do(http.MethodPost, path, nil, jsonContent, Object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": Object{"expirationSeconds": 7200},
	})
	return reply.Str("status", "token"), err
}

// Apply creates objects of any kind, with their status.
func (k *Kube) Apply(objects []Object) error {
	for _, object := range objects {
		resource, namespace := ResourceOf(object), object.Str("metadata", "namespace")
		_, err := k.Create(resource, namespace, object)
		if status := object.At("status"); err == nil && status != nil {
			// A kind without a status subresource has stored it.
			if _, err = k.Patch(resource, namespace, object.Name(), Object{"status": status}, "status"); isStatus(err, http.StatusNotFound) {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.Str("kind"), object.Name(), err)
		}
	}
	return nil
}

// ResourceOf returns the resource of an object's kind.
func ResourceOf(object Object) Resource {
	group, version, found := strings.Cut(object.Str("apiVersion"), "/")
	if !found {
		group, version = "", group
	}
	return Resource{group, version, plural(object.Str("kind"))}
}

func plural(kind string) string {
	switch lower := strings.ToLower(kind); {
	case kind == "NetworkAttachmentDefinition":
		return "network-attachment-definitions"
	case strings.HasSuffix(lower, "s"):
		return lower + "es"
	default:
		return lower + "s"
	}
}
