// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// A program of musl's user land that looks a name up with musl's resolver, then becomes another program.
const muslLauncher = `
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct addrinfo* found;
  if (argc < 3 || getaddrinfo(argv[1], "80", 0, &found) != 0) return 10;
  puts("musl has the name");
  fflush(stdout);
  execv(argv[2], argv + 2);
  return 11;
}
`

// The name that the images' name server knows, with the port of a URL of this machine.
func named(url string) string { return strings.Replace(url, "127.0.0.1", "simulated.test", 1) }

// The plugin brings its own resolver and needs no library, of glibc or of musl.
func TestP5TheExecutableRunsInAUserLandOfMusl(t *testing.T) {
	t.Parallel()
	harvester, nomad := harness.StartSimulator(t, "--fast")
	image := harness.NewImage(t, 65534, 65534)
	image.Compile(t, muslLauncher, "/bin/launch")
	image.Copy(t, harness.Plugin(t), "/harvester")
	out, err := image.Run("/bin/launch", "simulated.test", "/harvester", "status",
		"--set", "harvester_url="+named(harvester), "--set", "auth_token=any", "--set", "nomad_address="+named(nomad),
		"--set", "namespace=nomad", "--set", "node_group_name=web", "--set", "node_class=web")
	// Both systems were read: the pool was never scaled.
	if !strings.HasPrefix(out, "musl has the name\n") || !strings.Contains(out, "\nTrouble:    pool web has no VM and no Lease in namespace nomad") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The image's own entry point and user, which may write to /tmp only; Harvester's and Nomad's names are
// looked up.
func TestP5TheAgentInTheLayoutOfItsImageScalesAPool(t *testing.T) {
	t.Parallel()
	harvester, nomad := harness.StartSimulator(t, "--fast")
	image := harness.NewAgentImage(t)
	agent, metrics := image.StartAgent(t, named(harvester), named(nomad))
	for _, count := range []int{2, 1, 0} {
		metrics.Want(count)
		harness.Eventually(t, 30*time.Second, fmt.Sprintf("harvester status shows %d VMs", count), func() error {
			if !agent.Running() {
				t.Fatal("the agent has ended")
			}
			out, err := image.Run("/plugins/harvester", "status", "--agent-config", "/etc/nomad-autoscaler/agent.hcl")
			if err == nil && (!strings.Contains(out, "\nReady:      yes\n") || !strings.Contains(out, fmt.Sprintf("\nCount:      %d\n", count))) {
				err = fmt.Errorf("not yet")
			}
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
			return err
		})
	}
	if len(agent.PluginLines(t)) == 0 {
		t.Error("the agent's log has no line of the plugin")
	}
	agent.StopInOrder(t)
	if left, err := os.ReadDir(filepath.Join(image.Root, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left over in /tmp: %v, %v", left, err)
	}
}
