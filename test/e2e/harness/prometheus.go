// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"nomad-harvester.local/test/prometheus"
)

// Prometheus is a real one that scrapes the plugin every second, with the rules of
// examples/prometheus-alerts.yaml.
type Prometheus struct {
	prometheus.Server
	Began time.Time
}

// StartPrometheus also makes the agents that are started from now on serve the
// plugin's metrics.
func (s *Stack) StartPrometheus(t testing.TB) *Prometheus {
	t.Helper()
	s.MetricsAddress = fmt.Sprintf("%s:%d", loopback, freePort(t))
	listen := fmt.Sprintf("%s:%d", loopback, freePort(t))
	cmd, err := prometheus.Command(part(t, "prometheus", "prometheus"), s.Dir, listen, s.MetricsAddress,
		filepath.Join(Root, "examples", "prometheus-alerts.yaml"), time.Second)
	check(t, "Prometheus", err)
	process := start(t, s.Dir, "prometheus", cmd)
	p := &Prometheus{Server: prometheus.Server("http://" + listen), Began: time.Now()}
	Eventually(t, 30*time.Second, "Prometheus has the rules", func() error {
		if !process.Running() {
			t.Fatalf("Prometheus has ended:\n%s", tail(process.Log, 20))
		}
		rules, err := p.Rules()
		if err == nil && len(rules) == 0 {
			err = fmt.Errorf("no rules")
		}
		return err
	})
	return p
}

// AwaitPool waits until Prometheus has the counters of a pool that nothing has happened to: what
// comes before a counter's first scrape is no increase. Prometheus takes five seconds to find its
// targets.
func (p *Prometheus) AwaitPool(t testing.TB) {
	t.Helper()
	Eventually(t, 30*time.Second, "Prometheus has scraped the pool", func() error {
		series, err := p.Query("nomad_harvester_vm_created_total == 0")
		if err == nil && len(series) == 0 {
			err = fmt.Errorf("no nomad_harvester_vm_created_total is 0")
		}
		return err
	})
}
