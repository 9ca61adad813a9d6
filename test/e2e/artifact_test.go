// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

const program = "#!/bin/sh\n"

// archive has a program as a release's archive has it (scripts/release).
func archive(t *testing.T) []byte {
	t.Helper()
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	files := tar.NewWriter(zip)
	must(t, files.WriteHeader(&tar.Header{Name: "harvester", Mode: 0o755, Size: int64(len(program))}))
	fmt.Fprint(files, program)
	files.Close()
	zip.Close()
	return data.Bytes()
}

// Why examples/autoscaler.nomad.hcl fetches the archive: a task's artifact that is a file by itself is
// not executable (hashicorp/nomad issue 2676; hashicorp/go-getter:get_http.go, GetFile), and the agent,
// another user in a container, cannot start it.
func TestNomadsArtifactOfTheExampleIsExecutableAndABareFileIsNot(t *testing.T) {
	example := must1(os.ReadFile(filepath.Join(harness.Root, "examples", "autoscaler.nomad.hcl")))(t)
	artifact := regexp.MustCompile(`artifact \{\s*source\s*= "https://\S*(/harvester_\S*\.tar\.gz)"\s*destination = "(\S*)"\s*options \{`)
	found := artifact.FindStringSubmatch(string(example))
	if found == nil {
		t.Fatal("the example has another artifact")
	}
	packed, destination := archive(t), found[2]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == found[1] {
			w.Write(packed)
		} else {
			w.Write([]byte(program))
		}
	}))
	t.Cleanup(server.Close)

	s := harness.StartNomad(t, harness.NomadOptions{})
	machine := boot(t, s, "clients-x7k2p", nil)
	awaitReady(t, s, "clients-x7k2p")
	agent := task("agent", harness.Object{"run_for": "24h"})
	agent["Artifacts"] = []harness.Object{
		{"GetterSource": server.URL + found[1], "RelativeDest": destination},
		{"GetterSource": server.URL + "/harvester", "RelativeDest": "local/bare/harvester", "GetterMode": "file"},
	}
	s.Nomad.Run(t, job("autoscaler", "service", harness.Object{"Count": 1, "Tasks": []harness.Object{agent}}))
	harness.Eventually(t, 30*time.Second, "the job runs", func() error {
		running, err := s.Nomad.RunningOn("autoscaler")
		if err == nil && running["clients-x7k2p"] != 1 {
			err = fmt.Errorf("it runs on %v", running)
		}
		return err
	})
	for path, want := range map[string]os.FileMode{destination + "/harvester": 0o111, "local/bare/harvester": 0} {
		files, err := filepath.Glob(filepath.Join(machine.Data, "alloc", "*", "agent", path))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", path, files, err)
		}
		info, err := os.Stat(files[0])
		if err != nil || info.Mode()&0o111 != want {
			t.Errorf("%s has the mode %v, want executable bits %v: %v", path, info.Mode(), want, err)
		}
	}
}
