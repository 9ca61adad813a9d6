// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad-autoscaler/sdk"
	"nomad-harvester.local/test/prometheus"
)

// What Prometheus itself says about the plugin's metrics and the examples (rule T2): its server
// scrapes a plugin that acts, and promtool checks the format and the rules.

const (
	exampleRules     = "../../examples/prometheus-alerts.yaml"
	exampleDashboard = "../../examples/grafana-dashboard.json"
)

// The path of one of Prometheus' programs.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	output, err := command(t, "../../scripts/real-parts", "path", "prometheus").Output()
	if err != nil {
		t.Fatalf("Prometheus is not to be had: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(output)), name)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener := must1(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

func metricsConfig(cluster *simulatedCluster, address string) map[string]string {
	return map[string]string{"harvester_url": cluster.harvester, "nomad_address": cluster.nomad,
		"auth_token": "secret-token-of-the-test", "metrics_address": address}
}

func joiningPolicy(more ...string) map[string]string {
	return completePolicy(append([]string{"networks", "default/vlan10", "namespace", "nomad", "image",
		"default/ubuntu-24.04", "user_data",
		"#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n" +
			"    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n"}, more...)...)
}

func scrape(t *testing.T, address string) (text string, ok bool) {
	t.Helper()
	reply, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return "", false
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	return string(body), err == nil && reply.StatusCode == http.StatusOK
}

// A plugin that has made a VM and removed it, and the address of its metrics.
func pluginWithMetrics(t *testing.T) (address string) {
	t.Helper()
	cluster := clusterFor(t)
	address = freeAddress(t)
	h := launch(t, realPlugin)
	must(t, h.target.SetConfig(metricsConfig(cluster, address)))
	for _, count := range []int64{2, 1} {
		if err := h.target.Scale(sdk.ScalingAction{Count: count}, joiningPolicy()); err != nil {
			t.Fatalf("Scale to %d: %v\n%s", count, err, h.stderr)
		}
		waitUntil(t, "the VMs are ready, or gone", func() bool {
			got := h.status(joiningPolicy())
			return got.Ready && got.Count == count && got.Meta["harvester.draining"] == "0"
		})
	}
	waitUntil(t, "the metrics are served", func() bool { _, ok := scrape(t, address); return ok })
	return address
}

func TestT2_promtool_has_nothing_to_say_about_the_metrics(t *testing.T) {
	text, _ := scrape(t, pluginWithMetrics(t))
	if !strings.Contains(text, `nomad_harvester_vms{pool="nomad/pool",state="ready"} 1`) {
		t.Errorf("not the pool's VMs:\n%s", text)
	}
	if strings.Contains(text, "secret-token-of-the-test") {
		t.Error("a secret is served")
	}
	check := command(t, prometheusProgram(t, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if output, err := check.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s\n%s", err, output, text)
	}
}

func TestT2_a_second_plugin_serves_the_port_once_the_first_has_ended(t *testing.T) {
	cluster := clusterFor(t)
	address := freeAddress(t)
	first, second := launch(t, realPlugin), launch(t, realPlugin)
	must(t, first.target.SetConfig(metricsConfig(cluster, address)))
	waitUntil(t, "the first serves", func() bool { _, ok := scrape(t, address); return ok })
	if err := second.target.SetConfig(metricsConfig(cluster, address)); err != nil {
		t.Errorf("a busy port is no error of SetConfig: %v", err)
	}
	const warning = "Metrics cannot be served at metrics_address; trying again until they can"
	waitUntil(t, "the second warns", func() bool { return len(second.logs.find(warning)) == 1 })
	first.client.Kill()
	waitUntil(t, "the second serves", func() bool { _, ok := scrape(t, address); return ok })
	if warnings := second.logs.find(warning); len(warnings) != 1 {
		t.Errorf("%d warnings", len(warnings))
	}
}

// Prometheus with the example's rules.
func startPrometheus(t *testing.T, target string) prometheus.Server {
	t.Helper()
	rules := must1(filepath.Abs(exampleRules))(t)
	address := freeAddress(t)
	server, err := prometheus.Command(prometheusProgram(t, "prometheus"), t.TempDir(), address, target, rules,
		200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	server.Stderr = log
	must(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	return prometheus.Server("http://" + address)
}

func dashboardExpressions(t *testing.T) (expressions []string) {
	t.Helper()
	panels, err := prometheus.Panels(exampleDashboard)
	if err != nil {
		t.Error(err)
	}
	for _, panel := range panels {
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expression())
		}
	}
	return expressions
}

// The metrics of the other process, the APM.
var ofAPM = regexp.MustCompile(`_(nodes_needed|pending_allocations|demand_read_timestamp_seconds|queries_total)$`)

var metricName = regexp.MustCompile(`nomad_harvester_[a-z_]+`)

func TestT2_prometheus_scrapes_a_plugin_and_the_dashboard_shows_it(t *testing.T) {
	server := startPrometheus(t, pluginWithMetrics(t))
	waitUntil(t, "Prometheus has the pool's VMs", func() bool {
		series, err := server.Query(`nomad_harvester_vms{state="ready"}`)
		return err == nil && len(series) == 1 && series[0].Metric["pool"] == "nomad/pool" && series[0].Sample.Value == 1
	})
	expressions := dashboardExpressions(t)
	if len(expressions) < 15 {
		t.Errorf("only %d expressions", len(expressions))
	}
	for _, expression := range expressions {
		if _, err := server.Query(expression); err != nil {
			t.Error(err)
		}
		for _, name := range metricName.FindAllString(expression, -1) {
			if ofAPM.MatchString(name) {
				continue
			}
			if series, err := server.Query(name); err != nil || len(series) == 0 {
				t.Errorf("%s: a plugin that has scaled a pool has no %s", expression, name)
			}
		}
	}
	if rules, err := server.Rules(); err != nil || len(rules) == 0 {
		t.Errorf("the example's rules: %+v, %v", rules, err)
	}
}

func TestT2_the_rules_of_the_example_fire_when_they_should(t *testing.T) {
	promtool := prometheusProgram(t, "promtool")
	for _, arguments := range [][]string{
		{"check", "rules", exampleRules}, {"test", "rules", "testdata/alerts-test.yaml"},
	} {
		if output, err := command(t, promtool, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
}
