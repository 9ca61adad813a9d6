// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad-autoscaler/plugins/shared"
)

// A Harvester and a Nomad that refuse every request and tell its credentials back.
func talkativeServer(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "not for %q %q", r.Header.Get("Authorization"), r.Header.Get("X-Nomad-Token"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func checkNoSecret(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(text, form) {
				t.Errorf("%q is in: %s", form, text)
			}
		}
	}
}

func TestP3AServerThatTellsATokenBackPutsItIntoNoText(t *testing.T) {
	h := launch(t, realPlugin)
	url := talkativeServer(t)
	const harvesterToken, nomadToken = "token-of-harvester-1", "token-of-nomad-1"
	config := map[string]string{"harvester_url": url, "auth_token": harvesterToken,
		"nomad_address": url, "nomad_token": nomadToken}
	must(t, h.target.SetConfig(config))
	got, err := h.target.Status(completePolicy(shared.PluginConfigKeyGRPCTimeout, "5s"))
	if err != nil || got.Ready {
		t.Errorf("Status: %+v, %v", got, err)
	}
	err = h.scale(completePolicy())
	if err == nil {
		t.Fatal("the Scale succeeded")
	}
	h.client.Kill()
	checkNoSecret(t, fmt.Sprint(err, got, h.stderr), harvesterToken, nomadToken)
	if !strings.Contains(h.stderr.String(), "REDACTED") {
		t.Errorf("the server's text is not in the log, so nothing was tested:\n%s", h.stderr)
	}
}

// The next configuration's texts may hold what was secret in an old one: it is not kept for ever.
func TestP3SecretsOfAnOldConfigurationAreForgotten(t *testing.T) {
	h := launch(t, realPlugin)
	must(t, h.target.SetConfig(map[string]string{"harvester_url": "http://127.0.0.1:1", "auth_token": "no-such-key-1"}))
	wrong := map[string]string{"no-such-key-1": "x"}
	if err := h.target.SetConfig(wrong); err == nil || strings.Contains(err.Error(), "no-such-key-1") {
		t.Errorf("in force: %v", err)
	}
	must(t, h.target.SetConfig(map[string]string{"harvester_url": "http://127.0.0.1:1"}))
	if err := h.target.SetConfig(wrong); err == nil || !strings.Contains(err.Error(), "no-such-key-1") {
		t.Errorf("afterwards: %v", err)
	}
}

func TestP3APEMInPlaceOfItsPathIsNotQuoted(t *testing.T) {
	h := launch(t, realPlugin)
	body := strings.Repeat("MIIEvQIBADANBgkq", 4)
	key := "-----BEGIN PRIVATE KEY-----\n" + body + "\n-----END PRIVATE KEY-----\n"
	for _, name := range []string{"harvester_client_key", "nomad_client-key", "harvester_client_cert"} {
		for _, value := range []string{key, body, base64.StdEncoding.EncodeToString([]byte(key))} {
			err := h.target.SetConfig(map[string]string{"harvester_url": "http://127.0.0.1:1", name: value})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			} else if name != "harvester_client_cert" || value != body {
				checkNoSecret(t, err.Error(), "MIIEvQIBADANBgkq", "-----BEGIN PRIVATE")
			}
		}
	}
	h.client.Kill()
	checkNoSecret(t, h.stderr.String(), key)
}

func TestP3TheProxysPasswordIsInNoText(t *testing.T) {
	listener := must1(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed := listener.Addr().String()
	listener.Close()
	for _, userInfo := range []string{"user:s3cr%40t%2Fw0rd", "user:s3cr@t w0rd", "user:s3cr/tw0rd", "user:1#s3cr@t"} {
		for _, host := range []string{closed, "proxy.invalid:3128"} {
			h := launch(t, realPlugin, withEnv("https_proxy=http://"+userInfo+"@"+host))
			configured := h.target.SetConfig(map[string]string{
				"harvester_url": "https://192.0.2.1", "auth_token": "t", "harvester_skip_verify": "true"})
			got, err := h.target.Status(completePolicy(shared.PluginConfigKeyGRPCTimeout, "2s"))
			h.client.Kill()
			all := fmt.Sprint(configured, got, err, h.stderr)
			for _, part := range []string{"s3cr", "w0rd"} {
				if strings.Contains(all, part) {
					t.Errorf("%s: %q is in %s", userInfo, part, all)
				}
			}
			if !strings.Contains(all, "the proxy") {
				t.Errorf("%s: nobody speaks of the proxy: %s", userInfo, all)
			}
		}
	}
}

// The shared object of an engine in the host's openssl.cnf would run in the agent's place. The
// configuration of this test writes a file when it is followed, and breaks TLS.
func TestOpenSSLLoadsNoConfigurationOfTheHost(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	source := filepath.Join(dir, "foreign.c")
	write := func(path, text string) {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(source, `#include <fcntl.h>
__attribute__((constructor)) static void run(void) { creat("`+mark+`", 0600); }
`)
	object := filepath.Join(dir, "foreign.so")
	if output, err := exec.Command("cc", "-shared", "-fPIC", "-o", object, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	config := filepath.Join(dir, "openssl.cnf")
	write(config, `config_diagnostics = 1
openssl_conf = init
[init]
engines = engines
ssl_conf = ssl
[engines]
foreign = foreign
[foreign]
engine_id = dynamic
dynamic_path = `+object+`
init = 1
[ssl]
system_default = broken
[broken]
CipherString = no-such-cipher
`)
	// gRPC's TLS to the host, and libcurl's to Harvester.
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	h := launch(t, realPlugin, withAutoMTLS, withEnv("OPENSSL_CONF="+config))
	if err := h.target.SetConfig(map[string]string{"harvester_url": server.URL, "auth_token": "t",
		"harvester_skip_verify": "true", "nomad_address": server.URL, "nomad_skip-verify": "true"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.target.Status(completePolicy(shared.PluginConfigKeyGRPCTimeout, "5s")); err != nil {
		t.Error(err)
	}
	h.client.Kill()
	if !strings.Contains(h.stderr.String(), "404") {
		t.Errorf("no reply over TLS:\n%s", h.stderr)
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("foreign code ran in the plugin: %v", err)
	}
}

// The kernel gives what belongs to a process that may not be traced to root; what monitoring reads
// (its size, its state) stays readable for everybody.
func TestThePluginWritesNoCoreFileAndIsStillMonitored(t *testing.T) {
	h := launch(t, realPlugin)
	proc := fmt.Sprintf("/proc/%d/", h.cmd.Process.Pid)
	limits := must1(os.ReadFile(proc + "limits"))(t)
	core := ""
	for _, line := range strings.Split(string(limits), "\n") {
		if strings.HasPrefix(line, "Max core file size") {
			core = strings.Join(strings.Fields(line)[4:6], " ")
		}
	}
	if core != "0 0" {
		t.Errorf("core limits %q", core)
	}
	info, err := os.Stat(proc + "status")
	if err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("status: %v, %v", info, err)
	}
}
