// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/nomad-autoscaler/plugins"
	"github.com/hashicorp/nomad-autoscaler/plugins/base"
	"github.com/hashicorp/nomad-autoscaler/plugins/target"
	"github.com/hashicorp/nomad-autoscaler/sdk"
	"google.golang.org/grpc"
)

// A host with one plugin, set up like the autoscaler's plugin manager
// (hashicorp/nomad-autoscaler:plugins/manager/manager.go, launchExternalPlugin).
type host struct {
	t      *testing.T
	cmd    *exec.Cmd
	client *goplugin.Client
	rpc    goplugin.ClientProtocol
	target target.Target
	stderr *lockedBuffer
	logs   *logSink
	tmp    string
}

type option func(*goplugin.ClientConfig)

func withEnv(pairs ...string) option {
	return func(c *goplugin.ClientConfig) { c.Cmd.Env = append(c.Cmd.Env, pairs...) }
}

func withAutoMTLS(c *goplugin.ClientConfig) { c.AutoMTLS = true }

func clientConfig(binary string) *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig: plugins.Handshake,
		Plugins: map[string]goplugin.Plugin{
			sdk.PluginTypeBase:   &base.PluginBase{},
			sdk.PluginTypeTarget: &target.PluginTarget{},
		},
		Cmd:              exec.Command(binary),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
	}
}

// Launches the plugin. At the end of the test it is killed, every line of its stderr is checked,
// and its TMPDIR must be empty.
func launch(t *testing.T, binary string, options ...option) *host {
	t.Helper()
	h := &host{t: t, stderr: &lockedBuffer{}, logs: &logSink{}, tmp: t.TempDir()}
	config := clientConfig(binary)
	config.Cmd.Env = []string{"TMPDIR=" + h.tmp}
	config.SkipHostEnv = true
	config.Stderr = h.stderr
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Trace, Output: &lockedBuffer{}})
	logger.RegisterSink(h.logs)
	config.Logger = logger
	for _, o := range options {
		o(config)
	}
	h.cmd = config.Cmd
	h.client = goplugin.NewClient(config)
	t.Cleanup(h.finish)

	rpc, err := h.client.Client()
	if err != nil {
		t.Fatalf("launch: %v\n%s", err, h.stderr)
	}
	h.rpc = rpc
	raw, err := rpc.Dispense(sdk.PluginTypeTarget)
	if err != nil {
		t.Fatalf("dispense: %v", err)
	}
	h.target = raw.(target.Target)
	return h
}

func (h *host) conn() *grpc.ClientConn { return h.rpc.(*goplugin.GRPCClient).Conn }

func (h *host) finish() {
	h.client.Kill()
	checkStderr(h.t, h.stderr.String())
	checkEmpty(h.t, h.tmp)
}

// Waits until the process has ended and returns its exit code; -1: ended by a signal.
func (h *host) exitCode() int {
	h.t.Helper()
	waitUntil(h.t, "the plugin has ended", h.client.Exited)
	return h.cmd.ProcessState.ExitCode()
}

func (h *host) checkEndedInOrder() {
	h.t.Helper()
	if code := h.exitCode(); code != 0 {
		h.t.Errorf("exit code %d\n%s", code, h.stderr)
	}
}

// The fake ignores count and direction; scripts are config maps.
func (h *host) scale(script map[string]string) error {
	return h.target.Scale(sdk.ScalingAction{Count: 1, Direction: sdk.ScaleDirectionUp}, script)
}

// Starts a Scale with the script; returns when the plugin has begun it.
func (h *host) scaleInBackground(script map[string]string) <-chan error {
	h.t.Helper()
	before := h.status(nil).Count
	done := make(chan error, 1)
	go func() { done <- h.scale(script) }()
	waitUntil(h.t, "the Scale has begun", func() bool { return h.status(nil).Count > before })
	return done
}

func (h *host) status(script map[string]string) *sdk.TargetStatus {
	h.t.Helper()
	status, err := h.target.Status(script)
	if err != nil {
		h.t.Fatalf("Status: %v", err)
	}
	return status
}

// Every line must be what go-plugin parses as hclog (hashicorp/go-plugin:log_entry.go): it panics
// on a value of another type.
func checkStderr(t *testing.T, text string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" && text == "" {
			continue
		}
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("no JSON on stderr: %q", line)
			continue
		}
		for _, key := range []string{"@level", "@message", "@timestamp"} {
			if _, ok := entry[key].(string); !ok {
				t.Errorf("%s is no string in %q", key, line)
			}
		}
		stamp, _ := entry["@timestamp"].(string)
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", stamp); err != nil {
			t.Errorf("timestamp: %v", err)
		}
	}
}

func checkEmpty(t *testing.T, directory string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Error(err)
	}
	for _, entry := range entries {
		t.Errorf("left over in %s: %s", directory, entry.Name())
	}
}

// Waits for an event in another process. The limit is far above the usual time: only a hang
// reaches it.
func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func wait[T any](t *testing.T, what string, channel <-chan T) T {
	t.Helper()
	select {
	case value := <-channel:
		return value
	case <-time.After(time.Minute):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

// Killed at the end of the test, and after a minute: nothing here takes that long.
func command(t *testing.T, name string, arguments ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, name, arguments...)
	t.Cleanup(cancel)
	return cmd
}

type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

type logLine struct {
	level   hclog.Level
	message string
	fields  map[string]any
}

// The host's log, with its plugin's lines.
type logSink struct {
	mutex sync.Mutex
	lines []logLine
}

func (s *logSink) Accept(_ string, level hclog.Level, message string, args ...any) {
	line := logLine{level: level, message: message, fields: map[string]any{}}
	for i := 0; i+1 < len(args); i += 2 {
		if key, ok := args[i].(string); ok {
			line.fields[key] = args[i+1]
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lines = append(s.lines, line)
}

func (s *logSink) find(message string) []logLine {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var result []logLine
	for _, line := range s.lines {
		if line.message == message {
			result = append(result, line)
		}
	}
	return result
}

func exitCodeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -2
}
