// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Act takes an action of Harvester's own API on an object, as its user interface does: id is "namespace/name", or
// a host's name (harvester/harvester:pkg/api/vm/formatter.go, pkg/api/node/formatter.go). The server takes
// everybody for an administrator, since Rancher stands before it.
func (c *Cluster) Act(kind, id, action string, input Object) error {
	body, err := json.Marshal(input)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, c.steve+"/v1/harvester/"+kind+"/"+id+"?action="+action, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", jsonContent)
	request.Header.Set("Accept", jsonContent)
	request.Header.Set("X-Forwarded-Proto", "https") // as from the ingress before it, which ends TLS
	response, err := (&http.Client{Timeout: 30 * time.Second * slow}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = &APIError{Code: response.StatusCode, Message: string(text)}
	}
	return err
}

// ActOnVM takes an action on a VM of the stack.
func (s *Stack) ActOnVM(t testing.TB, name, action string, input Object) {
	t.Helper()
	s.act(t, "kubevirt.io.virtualmachines", s.Namespace+"/"+name, action, input)
}

// ActOnHost takes an action on a physical host.
func (c *Cluster) ActOnHost(t testing.TB, host, action string, input Object) {
	t.Helper()
	c.act(t, "nodes", host, action, input)
}

// act waits until Harvester's server offers the action: it does so by what it has seen of the object, which may be
// a moment old.
func (c *Cluster) act(t testing.TB, kind, id, action string, input Object) {
	t.Helper()
	Eventually(t, time.Minute, action+" "+id, func() error {
		err := c.Act(kind, id, action, input)
		if err != nil && !isStatus(err, http.StatusNotFound) {
			t.Fatalf("%s %s: %v", action, id, err)
		}
		return err
	})
}

// serveHandler is what virt-api asks of the virt-handlers of all hosts: to pause a guest and to let it go on, and to
// freeze its file systems. It
// listens where it is expected, at the address of the virt-handlers' pods (addHandlerPods).
func (p *players) serveHandler(t testing.TB, c *Cluster, port int) {
	t.Helper()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // v1/namespaces/NAMESPACE/virtualmachineinstances/NAME/ACTION
		if len(path) != 6 {
			http.NotFound(w, r)
			return
		}
		switch path[5] {
		case "freeze", "unfreeze": // the guest's file systems, around a snapshot
			return
		case "pause", "unpause":
		default:
			http.NotFound(w, r)
			return
		}
		instance, err := p.kube.Get(Instances, path[2], path[4])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		p.lock.Lock()
		defer p.lock.Unlock()
		p.paused[instance.UID()] = path[5] == "pause"
	})}
	address := fmt.Sprintf("%s:%d", loopback, port)
	listener := must[net.Listener](t, "virt-handler")(tls.Listen("tcp", address, &tls.Config{
		Certificates: []tls.Certificate{c.Certificates.Server}, ClientAuth: tls.RequestClientCert,
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

const handlerLabel = "virt-handler"

// addHandlerPods makes the pods by which virt-api finds the virt-handler of a host.
func (p *players) addHandlerPods(t testing.TB) {
	t.Helper()
	for _, host := range HostNames() {
		pod := Object{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": Object{"name": "virt-handler-" + host, "namespace": systemNamespace, "labels": Object{"kubevirt.io": handlerLabel}},
			"spec": Object{
				"nodeName": host, "containers": []Object{{"name": "virt-handler", "image": "virt-handler"}},
				"tolerations": []Object{{"operator": "Exists"}},
			},
		}
		// Until its controller has made the namespace's default ServiceAccount, a pod is forbidden.
		Eventually(t, time.Minute, "virt-handler of "+host, func() error {
			_, err := p.kube.Create(Pods, systemNamespace, pod)
			return err
		})
	}
}

// pause makes a guest, and its instance's condition, what was asked for.
func (p *players) pause(instance Object) error {
	p.lock.Lock()
	wanted := p.paused[instance.UID()]
	p.lock.Unlock()
	machine := p.running[instance.UID()]
	if wanted == HasCondition(instance, "Paused") || machine == nil {
		return nil
	}
	var conditions []Object
	for _, c := range instance.List("status", "conditions") {
		if c.Str("type") != "Paused" {
			conditions = append(conditions, c)
		}
	}
	if wanted {
		conditions = append(conditions, condition("Paused", true, "PausedByUser", "VMI was paused by user"))
		if err := machine.Suspend(); err != nil {
			return err
		}
	} else if err := machine.Resume(); err != nil {
		return err
	}
	p.log.Printf("%s: paused: %v", instance.Name(), wanted)
	_, err := p.handler.Patch(Instances, instance.Str("metadata", "namespace"), instance.Name(), at(instance, Object{"status": Object{"conditions": conditions}}))
	return err
}
