// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startEtcd returns the client URL of a store that forgets nothing until the end.
func startEtcd(t testing.TB, dir string) string {
	t.Helper()
	client := fmt.Sprintf("http://%s:%d", loopback, freePort(t))
	peer := fmt.Sprintf("http://%s:%d", loopback, freePort(t))
	process := start(t, dir, "etcd", exec.Command(part(t, "etcd", "etcd"),
		"--data-dir", filepath.Join(dir, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer,
		"--log-level", "warn",
	))
	Eventually(t, time.Minute, "etcd is healthy", func() error {
		return answersOK(process, http.DefaultClient, client+"/health")
	})
	return client
}

// answersOK returns nil when a server that a process runs answers 200.
func answersOK(process *Process, client *http.Client, url string) error {
	if !process.Running() {
		return fmt.Errorf("%s has ended:\n%s", process.Name, tail(process.Log, 20))
	}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return expect("status", response.StatusCode, http.StatusOK)
}

// Compact makes the store forget all revisions but the newest, as it does by
// itself every five minutes: lists in pages that began before cannot go on.
func (s *Stack) Compact() error {
	call := func(path, body string) (Object, error) {
		response, err := http.Post(s.etcd+path, "application/json", strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("etcd: %d %s", response.StatusCode, data)
		}
		return decodeObject(data)
	}
	// The key is one zero byte; only the revision of the answer matters.
	reply, err := call("/v3/kv/range", `{"key":"AA=="}`)
	if err != nil {
		return err
	}
	_, err = call("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, reply.Str("header", "revision")))
	return err
}
