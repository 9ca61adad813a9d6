// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestP3LogLinesArriveWithTheirLevels(t *testing.T) {
	h := launch(t, fakePlugin)
	h.status(map[string]string{"do": "log"})
	want := map[string]hclog.Level{
		"trace": hclog.Trace, "debug": hclog.Debug, "info": hclog.Info, "warn": hclog.Warn, "error": hclog.Error,
	}
	waitUntil(t, "five lines have arrived", func() bool { return len(h.logs.find("scripted line")) == len(want) })
	for _, line := range h.logs.find("scripted line") {
		name, _ := line.fields["level_name"].(string)
		if want[name] != line.level {
			t.Errorf("%s arrived as %v", name, line.level)
		}
		delete(want, name)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}

// finish() checks every line of stderr: gRPC writes thousands of them here.
func TestP3LinesOfGrpcItselfAreLogLines(t *testing.T) {
	h := launch(t, fakePlugin, withEnv("GRPC_VERBOSITY=DEBUG", "GRPC_TRACE=http,tcp"))
	h.status(nil)
	waitUntil(t, "gRPC has logged", func() bool {
		h.logs.mutex.Lock()
		defer h.logs.mutex.Unlock()
		for _, line := range h.logs.lines {
			if line.fields["library"] == "grpc" {
				return true
			}
		}
		return false
	})
}
