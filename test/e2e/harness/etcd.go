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

// startEtcd starts an etcd without automatic compaction and returns its client URL.
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
		"--unsafe-no-fsync", // nothing outlives the test
	))
	Eventually(t, time.Minute, "etcd is healthy", func() error {
		return answersOK(process, http.DefaultClient, client+"/health")
	})
	return client
}

// answersOK returns nil if the process's server responds with 200.
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

// Compact removes all revisions but the newest, as happens every five minutes in
// a real cluster: paginated lists that began before cannot be continued.
func (c *Cluster) Compact() error {
	call := func(path, body string) (Object, error) {
		response, err := http.Post(c.etcd+path, "application/json", strings.NewReader(body))
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
	// The key is one zero byte; only the revision in the reply matters.
	reply, err := call("/v3/kv/range", `{"key":"AA=="}`)
	if err != nil {
		return err
	}
	_, err = call("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, reply.Str("header", "revision")))
	return err
}
