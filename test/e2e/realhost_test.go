// SPDX-License-Identifier: Apache-2.0

//go:build host

// A host that nobody plays: kubelet, containerd, KubeVirt's virt-handler and virt-launcher, libvirt, QEMU.

package e2e

import (
	"os"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

func TestKubeVirtBootsAVMOfThePoolOnAHostThatIsReal(t *testing.T) {
	s := guests(t, harness.NomadOptions{}, nil)
	host := s.StartRealHost(t)
	if file := os.Getenv("HOLD"); file != "" {
		os.WriteFile(file, []byte(s.Dir+" "+s.Kube.URL+" "+s.Kube.Token+" "+s.Certificates.CAFile+" "+s.Namespace), 0o600)
		defer func() {
			for {
				if _, err := os.Stat(file); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
	}
	agent := s.StartAgent(t)
	_ = agent
	s.Metrics.Want(1)
	s.AwaitSettled(t, guestJoins, 1)
	t.Log(host.QEMUs(t))
}
