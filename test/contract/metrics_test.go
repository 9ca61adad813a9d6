// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/nomad-autoscaler/sdk"
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func metricsConfig(cluster *simulatedCluster, address string) map[string]string {
	return map[string]string{"harvester_url": cluster.harvester, "nomad_address": cluster.nomad,
		"auth_token": "secret-token-of-the-test", "metrics_address": address}
}

func joiningPolicy() map[string]string {
	return completePolicy("networks", "default/vlan10", "namespace", "nomad", "image",
		"default/ubuntu-24.04", "user_data",
		"#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"+
			"    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n")
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
	cluster, err := startCluster("--fast")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.stop)
	address = freeAddress(t)
	h := launch(t, realPlugin)
	if err := h.target.SetConfig(metricsConfig(cluster, address)); err != nil {
		t.Fatal(err)
	}
	for _, count := range []int64{2, 1} {
		if err := h.target.Scale(sdk.ScalingAction{Count: count}, joiningPolicy()); err != nil {
			t.Fatalf("Scale to %d: %v\n%s", count, err, h.stderr)
		}
		h.status(joiningPolicy())
	}
	waitUntil(t, "the metrics are served", func() bool { _, ok := scrape(t, address); return ok })
	return address
}

func TestT2_promtool_has_nothing_to_say_about_the_metrics(t *testing.T) {
	text, _ := scrape(t, pluginWithMetrics(t))
	if !strings.Contains(text, `nomad_harvester_vms{pool="nomad/pool",state="joined"} 1`) {
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
	cluster, err := startCluster("--fast")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.stop)
	address := freeAddress(t)
	first, second := launch(t, realPlugin), launch(t, realPlugin)
	if err := first.target.SetConfig(metricsConfig(cluster, address)); err != nil {
		t.Fatal(err)
	}
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

// Prometheus with the example's rules. Returns its URL.
func startPrometheus(t *testing.T, target string) string {
	t.Helper()
	rules, err := filepath.Abs(exampleRules)
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), freeAddress(t)
	config := fmt.Sprintf("global: {scrape_interval: 200ms}\nrule_files: [%q]\nscrape_configs:\n"+
		"- job_name: harvester\n  static_configs: [{targets: [%q]}]\n", rules, target)
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(prometheusProgram(t, "prometheus"), "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	log := &lockedBuffer{}
	server.Stderr = log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	return "http://" + address
}

type queryResult struct {
	Status string
	Error  string
	Data   struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
}

func query(server, expression string) (result queryResult, err error) {
	reply, err := http.Get(server + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return result, err
	}
	defer reply.Body.Close()
	return result, json.NewDecoder(reply.Body).Decode(&result)
}

func dashboardExpressions(t *testing.T) (expressions []string) {
	t.Helper()
	text, err := os.ReadFile(exampleDashboard)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	return expressions
}

var metricName = regexp.MustCompile(`nomad_harvester_[a-z_]+`)

func TestT2_prometheus_scrapes_a_plugin_and_the_dashboard_shows_it(t *testing.T) {
	server := startPrometheus(t, pluginWithMetrics(t))
	waitUntil(t, "Prometheus has the pool's VMs", func() bool {
		result, err := query(server, `nomad_harvester_vms{state="joined"}`)
		return err == nil && len(result.Data.Result) == 1 &&
			result.Data.Result[0].Metric["pool"] == "nomad/pool" && result.Data.Result[0].Value[1] == "1"
	})
	expressions := dashboardExpressions(t)
	if len(expressions) < 15 {
		t.Errorf("only %d expressions", len(expressions))
	}
	for _, expression := range expressions {
		result, err := query(server, strings.ReplaceAll(expression, "$pool", ".*"))
		if err != nil || result.Status != "success" {
			t.Errorf("%s: %v %s", expression, err, result.Error)
		}
		for _, name := range metricName.FindAllString(expression, -1) {
			if result, err := query(server, name); err != nil || len(result.Data.Result) == 0 {
				t.Errorf("%s: a plugin that has scaled a pool has no %s", expression, name)
			}
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Health, LastError string }
			}
		}
	}
	if err := get(server+"/api/v1/rules", &rules); err != nil || len(rules.Data.Groups) != 1 {
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
