package harness

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// startEtcd returns the client URL of a store that forgets nothing until the end.
func startEtcd(t testing.TB, dir string) string {
	t.Helper()
	client := fmt.Sprintf("http://%s:%d", loopback, freePort(t, loopback))
	peer := fmt.Sprintf("http://%s:%d", loopback, freePort(t, loopback))
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
