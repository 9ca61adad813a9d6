// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// The simulated Harvester and Nomad in a process of their own (test/simulator/serve_main.cc).
type simulatedCluster struct {
	process   *exec.Cmd
	stdin     io.Closer
	harvester string // base URLs
	nomad     string
}

func startCluster(arguments ...string) (*simulatedCluster, error) {
	c := &simulatedCluster{process: exec.Command(simulator, arguments...)}
	var err error
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(stdout)
	for _, url := range []*string{&c.harvester, &c.nomad} {
		if !lines.Scan() {
			c.stop()
			return nil, fmt.Errorf("the simulator said nothing: %v", lines.Err())
		}
		*url = lines.Text()
	}
	return c, nil
}

// One that ends with the test.
func clusterFor(t *testing.T) *simulatedCluster {
	t.Helper()
	cluster := must1(startCluster("--fast"))(t)
	t.Cleanup(cluster.stop)
	return cluster
}

func (c *simulatedCluster) stop() {
	c.stdin.Close()
	c.process.Wait()
}

// Registers a job with Nomad.
func (c *simulatedCluster) run(job string) error {
	request, err := http.NewRequest(http.MethodPut, c.nomad+"/v1/jobs", strings.NewReader(job))
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(reply.Body)
		return fmt.Errorf("the job was refused: %s %s", reply.Status, body)
	}
	return nil
}

func get(url string, into any) error {
	reply, err := http.Get(url)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, reply.Status)
	}
	return json.NewDecoder(bytes.NewReader(body)).Decode(into)
}
