// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	baseproto "github.com/hashicorp/nomad-autoscaler/plugins/base/proto/v1"
	targetproto "github.com/hashicorp/nomad-autoscaler/plugins/target/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func TestDevServesWithoutAHost(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		socket := filepath.Join(t.TempDir(), "dev.sock")
		for _, listen := range []string{"unix:" + socket, "127.0.0.1:0", "localhost:0", "[::1]:0"} {
			t.Run(listen+" "+signal.String(), func(t *testing.T) {
				stderr := &lockedBuffer{}
				// Under nohup SIGHUP is ignored, which dev respects.
				cmd := command(t, "env", "--default-signal", fakePlugin, "dev", listen)
				cmd.Env, cmd.Stderr = []string{}, stderr
				stdout := must1(cmd.StdoutPipe())(t)
				must(t, cmd.Start())
				line, err := bufio.NewReader(stdout).ReadString('\n')
				if err != nil {
					t.Fatalf("%v\n%s", err, stderr)
				}
				address := strings.TrimSpace(line)
				if strings.HasSuffix(address, ":0") {
					t.Errorf("address %s", address)
				}
				checkHealth(t, address)
				if strings.HasPrefix(listen, "unix:") {
					checkMode(t, socket, os.ModeSocket|0o600)
				}
				must(t, cmd.Process.Signal(signal))
				if code := exitCodeOf(cmd.Wait()); code != 0 {
					t.Errorf("exit code %d\n%s", code, stderr)
				}
				if _, err := os.Lstat(socket); !os.IsNotExist(err) {
					t.Errorf("left over: %v", err)
				}
			})
		}
	}
}

func checkHealth(t *testing.T, address string) {
	t.Helper()
	conn := must1(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	for _, service := range []string{"", "plugin"} {
		reply, err := grpc_health_v1.NewHealthClient(conn).Check(
			context.Background(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || reply.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, reply, err)
		}
	}
}

// Starts `harvester dev` and returns the address that it announced, and what stops it.
func startDev(t *testing.T, environment []string, arguments ...string) (address string, stderr *lockedBuffer, stop func()) {
	t.Helper()
	stderr = &lockedBuffer{}
	cmd := command(t, realPlugin, append([]string{"dev"}, arguments...)...)
	cmd.Env, cmd.Stderr = environment, stderr
	stdout := must1(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	for address == "" && lines.Scan() {
		address, _ = strings.CutPrefix(lines.Text(), "listening ")
		if !strings.Contains(lines.Text(), "listening ") {
			address = ""
		}
	}
	if address == "" {
		t.Fatalf("it announced no address\n%s", stderr)
	}
	return address, stderr, func() {
		t.Helper()
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		if code := exitCodeOf(cmd.Wait()); code != 0 {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	}
}

func dialDev(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn := must1(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A server that records the tokens it is sent, as the server of an attacker.
func tokenCollector(t *testing.T) (url string, tokens func() string) {
	var mutex sync.Mutex
	var seen strings.Builder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		seen.WriteString(r.Header.Get("Authorization") + r.Header.Get("X-Nomad-Token"))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string {
		mutex.Lock()
		defer mutex.Unlock()
		return seen.String()
	}
}

func TestDevListensInAPrivateDirectoryByDefault(t *testing.T) {
	tmp := t.TempDir()
	address, _, stop := startDev(t, []string{"TMPDIR=" + tmp})
	socket := strings.TrimPrefix(address, "unix:")
	if !strings.HasPrefix(socket, tmp+"/") {
		t.Errorf("address %s", address)
	}
	checkMode(t, socket, os.ModeSocket|0o600)
	checkMode(t, filepath.Dir(socket), os.ModeDir|0o700)
	checkHealth(t, address)
	stop()
	checkEmpty(t, tmp)
}

// Whoever may redirect the plugin receives the token of its environment.
func TestP3DevOnTCPRefusesSetConfig(t *testing.T) {
	attacker, tokens := tokenCollector(t)
	environment := []string{"HARVESTER_URL=http://127.0.0.1:1", "HARVESTER_TOKEN=secret-token-of-the-test",
		"NOMAD_TOKEN=secret-token-of-the-test", "NOMAD_ADDR=http://127.0.0.1:1"}
	address, stderr, stop := startDev(t, environment, "--listen", "127.0.0.1:0")
	conn := dialDev(t, address)
	_, err := baseproto.NewBasePluginServiceClient(conn).SetConfig(context.Background(),
		&baseproto.SetConfigRequest{Config: map[string]string{
			"harvester_url": attacker, "nomad_address": attacker}})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "--set") {
		t.Errorf("SetConfig: %v", err)
	}
	reply, err := targetproto.NewTargetPluginServiceClient(conn).Status(context.Background(),
		&targetproto.StatusRequest{Config: completePolicy()})
	if err != nil || reply.GetReady() {
		t.Errorf("Status: %v, %v", reply, err)
	}
	stop()
	if got := tokens(); got != "" {
		t.Errorf("the caller received %q", got)
	}
	if !strings.Contains(stderr.String(), "Any user of this machine may call") {
		t.Errorf("no warning\n%s", stderr)
	}
}

// Without a token in the environment there are still the files of the user.
func TestP3DevOnTCPRefusesSetConfigForASimulationToo(t *testing.T) {
	attacker, tokens := tokenCollector(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("content-of-a-file"), 0o600))
	address, _, stop := startDev(t, []string{"TMPDIR=" + t.TempDir()}, "--simulate", "--listen", "127.0.0.1:0")
	conn := dialDev(t, address)
	_, err := baseproto.NewBasePluginServiceClient(conn).SetConfig(context.Background(),
		&baseproto.SetConfigRequest{Config: map[string]string{
			"harvester_url": attacker, "nomad_address": attacker, "auth_token_file": file}})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("SetConfig: %v", err)
	}
	reply, err := targetproto.NewTargetPluginServiceClient(conn).Status(context.Background(),
		&targetproto.StatusRequest{Config: completePolicy()})
	if err != nil || !reply.GetReady() {
		t.Errorf("Status: %v, %v", reply, err)
	}
	stop()
	if got := tokens(); got != "" {
		t.Errorf("the caller received %q", got)
	}
}

func TestDevTakesSetConfigOnASocket(t *testing.T) {
	for _, arguments := range [][]string{nil, {"--simulate"}} {
		address, _, stop := startDev(t, []string{"TMPDIR=" + t.TempDir()}, arguments...)
		_, err := baseproto.NewBasePluginServiceClient(dialDev(t, address)).SetConfig(context.Background(),
			&baseproto.SetConfigRequest{Config: configFor("http://127.0.0.1:1")})
		if err != nil {
			t.Errorf("%q: %v", arguments, err)
		}
		stop()
	}
}

// grpcurl sends none when it is forgotten, and a count of 0 would remove every VM.
func TestDevRefusesAScaleWithoutAnAction(t *testing.T) {
	address, _, stop := startDev(t, []string{"TMPDIR=" + t.TempDir()}, "--simulate")
	_, err := targetproto.NewTargetPluginServiceClient(dialDev(t, address)).Scale(context.Background(),
		&targetproto.ScaleRequest{Config: completePolicy()})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "has no action") {
		t.Errorf("Scale: %v", err)
	}
	stop()
}

// zsh would hand over all of $POOL as one word.
func TestWhatDevPrintsCanBePastedIntoEachShell(t *testing.T) {
	for _, shell := range []string{"/bin/sh", "bash", "zsh"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			t.Parallel()
			_, _, pasted := simulatedWorld(t)
			cmd := patientCommand(t, shell)
			cmd.Env = []string{"ZDOTDIR=" + t.TempDir()}
			cmd.Stdin = strings.NewReader(pasted + realPlugin + " check $POOL # a comment\n")
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// What fails is explained by the command that meets it.
func TestDevSimulatesWhatFails(t *testing.T) {
	for _, failure := range []struct{ what, said string }{
		{"image", "still being imported"},
		{"quota", "insufficient resources due to resource quota"},
		{"unschedulable", "Insufficient memory"},
		{"join", "join"},
		{"drain", "drain"},
	} {
		t.Run(failure.what, func(t *testing.T) {
			t.Parallel()
			_, _, pasted := simulatedWorld(t, "--fail", failure.what)
			scale := func(count string) (string, error) {
				cmd := patientCommand(t, "/bin/sh")
				cmd.Env = []string{}
				cmd.Stdin = strings.NewReader(pasted + realPlugin + " scale --yes $POOL --count " + count)
				output, err := cmd.CombinedOutput()
				return string(output), err
			}
			if failure.what == "drain" {
				if output, err := scale("2"); err != nil {
					t.Fatalf("%v\n%s", err, output)
				}
			}
			output, err := scale("1")
			if exitCodeOf(err) != 1 || !strings.Contains(output, failure.said) {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}
