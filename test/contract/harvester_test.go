// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
)

// Tests that need the executable itself, with its own target service.

func completePolicy(more ...string) map[string]string {
	policy := map[string]string{
		"node_group_name": "pool", "node_class": "harvester", "image": "default/debian",
		"cpu_request": "2", "memory_request": "4Gi", "networks": "default/vlan1",
	}
	for i := 0; i+1 < len(more); i += 2 {
		policy[more[i]] = more[i+1]
	}
	return policy
}

// A server that accepts connections and never replies, for Harvester and for Nomad.
func silentServer(t *testing.T) (url string, connections *atomic.Int32) {
	t.Helper()
	listener := must1(net.Listen("tcp", "127.0.0.1:0"))(t)
	connections = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			connections.Add(1)
		}
	}()
	t.Cleanup(func() { listener.Close() })
	return "http://" + listener.Addr().String(), connections
}

func configFor(url string) map[string]string {
	return map[string]string{
		"harvester_url": url, "auth_token": "secret-token-of-the-test", "nomad_address": url,
		"nomad_token": "secret-token-of-the-test",
	}
}

func TestS3StatusAnswersInTimeWhileHarvesterHangs(t *testing.T) {
	h := launch(t, realPlugin)
	url, connections := silentServer(t)
	must(t, h.target.SetConfig(configFor(url)))
	got, err := h.target.Status(completePolicy(shared.PluginConfigKeyGRPCTimeout, "2s"))
	if err != nil || got.Ready {
		t.Errorf("%+v, %v", got, err)
	}
	if connections.Load() == 0 {
		t.Error("nobody was asked")
	}
}

func TestP1KillEndsThePluginInTimeWhileHarvesterHangs(t *testing.T) {
	h := launch(t, realPlugin)
	url, connections := silentServer(t)
	must(t, h.target.SetConfig(configFor(url)))
	scale := make(chan error, 1)
	go func() { scale <- h.scale(completePolicy()) }()
	waitUntil(t, "the Scale asks", func() bool { return connections.Load() > 0 })
	h.client.Kill()
	h.checkEndedInOrder()
	if err := wait(t, "the Scale has ended", scale); err == nil {
		t.Error("the Scale succeeded")
	}
	if strings.Contains(h.stderr.String(), "secret-token-of-the-test") {
		t.Error("the log has a secret")
	}
}

func TestP4NobodyListensIsNoReasonToRestartThePolicies(t *testing.T) {
	h := launch(t, realPlugin)
	must(t, h.target.SetConfig(configFor("http://127.0.0.1:1")))
	got, err := h.target.Status(completePolicy(shared.PluginConfigKeyGRPCTimeout, "5s"))
	if err != nil || got.Ready {
		t.Errorf("Status: %+v, %v", got, err)
	}
	err = h.scale(completePolicy())
	if err == nil || strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "EOF") {
		t.Errorf("Scale: %v", err)
	}
}
