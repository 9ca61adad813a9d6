// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func TestDevServesWithoutAHost(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		socket := filepath.Join(t.TempDir(), "dev.sock")
		for _, listen := range []string{"unix:" + socket, "127.0.0.1:0", "localhost:0", "[::1]:0"} {
			t.Run(listen+" "+signal.String(), func(t *testing.T) {
				stderr := &lockedBuffer{}
				cmd := command(t, fakePlugin, "dev", listen)
				cmd.Env, cmd.Stderr = []string{}, stderr
				stdout, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
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
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
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
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, service := range []string{"", "plugin"} {
		reply, err := grpc_health_v1.NewHealthClient(conn).Check(
			context.Background(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || reply.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, reply, err)
		}
	}
}

func TestDevListensOnThisMachineOnly(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "10.0.0.1:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "", "unix:"} {
		output, err := command(t, fakePlugin, "dev", listen).CombinedOutput()
		if code := exitCodeOf(err); code != 1 || !strings.Contains(string(output), "Cannot serve") {
			t.Errorf("%q: exit code %d, %s", listen, code, output)
		}
	}
}
