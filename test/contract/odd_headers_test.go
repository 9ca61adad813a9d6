// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// An HTTP/2 client that writes the frames and header blocks that a test likes. The server is gRPC 1.51;
// what later releases fixed in its reading of headers is tried here, by its number.
type oddClient struct {
	t       *testing.T
	conn    net.Conn
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	stream  uint32
	refused bool // a write failed: the server has closed the connection
}

func dialOdd(t *testing.T, network, address string) *oddClient {
	t.Helper()
	conn := must1(net.Dial(network, address))(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c := &oddClient{t: t, conn: conn, framer: http2.NewFramer(conn, conn), stream: 1}
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, nil)
	c.note(func() error { _, err := io.WriteString(conn, http2.ClientPreface); return err }())
	c.note(c.framer.WriteSettings())
	return c
}

// A refused connection is an answer, too.
func (c *oddClient) note(err error) {
	if err != nil {
		c.refused = true
	}
}

const bytesOfFrame = 16 << 10

// Sends a header block of any size as one request; ended: its last frame says that it is the last.
func (c *oddClient) sendBlock(block []byte, ended bool) {
	first := block[:min(len(block), bytesOfFrame)]
	block = block[len(first):]
	c.note(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: first,
		EndHeaders: ended && len(block) == 0}))
	for len(block) > 0 && !c.refused {
		next := block[:min(len(block), bytesOfFrame)]
		block = block[len(next):]
		c.note(c.framer.WriteContinuation(c.stream, ended && len(block) == 0, next))
	}
	if ended {
		emptyMessage := make([]byte, 5)
		c.note(c.framer.WriteData(c.stream, true, emptyMessage))
	}
	c.stream += 2
}

func (c *oddClient) encode(fields ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(c.block.Bytes())
}

// The headers of a call; more replaces those of the same name and adds others, in order.
func callHeaders(more ...string) []string {
	fields := []string{":method", "POST", ":scheme", "http", ":path", "/grpc.health.v1.Health/Check", ":authority", "localhost",
		"content-type", "application/grpc", "te", "trailers"}
	for i := 0; i < len(more); i += 2 {
		replaced := false
		for j := 0; j < len(fields); j += 2 {
			if fields[j] == more[i] {
				fields[j+1], replaced = more[i+1], true
			}
		}
		if !replaced {
			fields = append(fields, more[i], more[i+1])
		}
	}
	return fields
}

// Reads until the stream or the connection is at its end, and returns what ended it.
func (c *oddClient) outcome(stream uint32) string {
	for {
		frame, err := c.framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "nothing"
		}
		if err != nil {
			return "connection closed"
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			return "connection closed"
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "stream reset"
			}
		case *http2.HeadersFrame:
			fields, err := c.decoder.DecodeFull(frame.HeaderBlockFragment())
			if err != nil {
				c.t.Fatalf("the server's header block: %v", err)
			}
			if frame.StreamID != stream || !frame.StreamEnded() {
				continue
			}
			for _, field := range fields {
				if field.Name == "grpc-status" {
					return "status " + field.Value
				}
			}
			return "refused without a status"
		}
	}
}

// Resident memory of a process in MiB.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("the process has ended: %v", err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func socketOf(h *host) string { return h.client.ReattachConfig().Addr.String() }

// The host's connection is still served, and so is a new one.
func checkServes(t *testing.T, h *host) {
	t.Helper()
	if _, err := h.target.PluginInfo(); err != nil {
		t.Fatalf("the host's call afterwards: %v\n%s", err, h.stderr)
	}
	c := dialOdd(t, "unix", socketOf(h))
	c.sendBlock(c.encode(callHeaders()...), true)
	if got := c.outcome(1); got != "status 0" {
		t.Fatalf("a new connection afterwards: %s", got)
	}
}

// Much more than a header block of any real client, and than one frame.
var tooLarge = strings.Repeat("y", 200<<10)

var oddHeaders = []struct {
	name   string
	fields []string
}{
	{"CVE-2023-1428 te", []string{"te", "x", "later", tooLarge}},
	{"CVE-2023-1428 scheme", []string{":scheme", "x", "later", tooLarge}},
	{"CVE-2023-1428 grpclb_client_stats", []string{"grpclb_client_stats", "x", "later", tooLarge}},
	{"CVE-2023-32732 no base64", []string{"odd-bin", "!!!"}},
	{"CVE-2023-32731 too large", []string{"later", tooLarge}},
	{"no scheme that exists", []string{":scheme", "x"}},
	{"grpclb_client_stats", []string{"grpclb_client_stats", "x"}},
	{"no deadline that exists", []string{"grpc-timeout", "x"}},
	{"an endless deadline", []string{"grpc-timeout", strings.Repeat("9", 100) + "H"}},
	{"no method that exists", []string{":method", "x"}},
	{"a status of the client's", []string{":status", "x", "grpc-status", "x"}},
	{"no encoding that exists", []string{"grpc-encoding", "x", "grpc-accept-encoding", "\xff"}},
	{"retries without a number", []string{"grpc-previous-rpc-attempts", "x", "grpc-retry-pushback-ms", "x"}},
	{"no path", []string{":path", ""}},
	{"no authority", []string{":authority", "\x00"}},
	{"no content type that exists", []string{"content-type", "x"}},
	{"no trace that can be read", []string{"grpc-trace-bin", "!", "grpc-tags-bin", "!", "grpc-server-stats-bin", "!"}},
	{"no load that can be read", []string{"endpoint-load-metrics-bin", "!", "lb-token", "x", "lb-cost-bin", "x"}},
}

// gRPC may refuse the request or close the connection that sent it (CVE-2023-32732); it must not end the
// process, and other connections are served.
func TestP2OddHeadersEndTheirConnectionAtMost(t *testing.T) {
	h := launch(t, realPlugin)
	for _, test := range oddHeaders {
		t.Run(test.name, func(t *testing.T) {
			c := dialOdd(t, "unix", socketOf(h))
			c.sendBlock(c.encode(callHeaders(test.fields...)...), true)
			first := c.outcome(1)
			if first == "nothing" {
				t.Error("no answer")
			}
			// What the next request on the connection is answered, says whether both sides still agree on
			// HPACK's table (CVE-2023-32731): they do, or the connection is closed.
			c.sendBlock(c.encode(callHeaders()...), true)
			next := c.outcome(3)
			t.Logf("%s; next request: %s", first, next)
			if next != "status 0" && next != "connection closed" {
				t.Errorf("the next request on the connection: %s", next)
			}
			checkServes(t, h)
		})
	}
}

// CVE-2023-33953: header blocks that never end.
func TestP2EndlessHeadersHarmNoOtherConnection(t *testing.T) {
	const size = 1 << 20
	field := func(c *oddClient) []byte { return c.encode("name", strings.Repeat("v", 1000)) }
	repeat := func(block []byte) []byte { return bytes.Repeat(block, size/len(block)) }
	for name, block := range map[string]func(c *oddClient) []byte{
		"fields": func(c *oddClient) []byte { return repeat(field(c)) },
		// Each byte refers to a field of 1 KiB that was sent once.
		"references": func(c *oddClient) []byte { return append(field(c), repeat(field(c))...) },
		"value": func(*oddClient) []byte {
			return append([]byte{0, 1, 'a', 0x7f, 0x80, 0x80, 0x80, 0x80, 1}, bytes.Repeat([]byte{'v'}, size)...)
		},
		"number":        func(*oddClient) []byte { return append([]byte{0xff}, bytes.Repeat([]byte{0x80}, size)...) },
		"length":        func(*oddClient) []byte { return append([]byte{0, 0x7f}, bytes.Repeat([]byte{0x80}, size)...) },
		"table updates": func(*oddClient) []byte { return bytes.Repeat([]byte{0x20}, size) },
	} {
		t.Run(name, func(t *testing.T) {
			h := launch(t, realPlugin)
			before := residentMiB(t, h.cmd.Process.Pid)
			c := dialOdd(t, "unix", socketOf(h))
			_ = c.conn.SetDeadline(time.Now().Add(5 * time.Second))
			c.sendBlock(block(c), false)
			grown := residentMiB(t, h.cmd.Process.Pid) - before
			t.Logf("refused: %v; memory: %d MiB more", c.refused, grown)
			if grown > 128 {
				t.Errorf("%d MiB of memory for %d MiB of headers", grown, size>>20)
			}
			checkServes(t, h)
		})
	}
}

// CVE-2023-44487: requests that are cancelled at once.
func TestP2RequestsThatAreResetAtOnceHarmNoOtherConnection(t *testing.T) {
	h := launch(t, realPlugin)
	before := residentMiB(t, h.cmd.Process.Pid)
	c := dialOdd(t, "unix", socketOf(h))
	go func() { _, _ = io.Copy(io.Discard, c.conn) }()
	for i := 0; i < 5000 && !c.refused; i++ {
		c.sendBlock(c.encode(callHeaders()...), true)
		c.note(c.framer.WriteRSTStream(c.stream-2, http2.ErrCodeCancel))
	}
	t.Logf("refused: %v; memory: %d MiB more", c.refused, residentMiB(t, h.cmd.Process.Pid)-before)
	checkServes(t, h)
}

// CVE-2023-4785: more connections than files. gRPC 1.51 stops accepting then; the host has its connection.
func TestP2MoreConnectionsThanFilesLeaveTheHostsConnection(t *testing.T) {
	h := launch(t, realPlugin)
	limit := unix.Rlimit{Cur: 40, Max: 40}
	must(t, unix.Prlimit(h.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
	for range 200 {
		conn, err := net.Dial("unix", socketOf(h))
		if err != nil {
			break // the queue of the socket is full
		}
		defer conn.Close()
	}
	for range 10 {
		if _, err := h.target.PluginInfo(); err != nil {
			t.Fatalf("the host's call: %v\n%s", err, h.stderr)
		}
	}
}
