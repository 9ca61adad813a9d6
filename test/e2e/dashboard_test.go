// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
	"nomad-harvester.local/test/prometheus"
)

// panels says what each panel of examples/grafana-dashboard.json must show after a pool has grown,
// drained and shrunk: the series that left 0, by the beginnings of their legends. A panel
// without one may be empty, for the reason given.
var panels = map[string]struct {
	shows []string
	empty string
}{
	"VMs by state":                         {shows: []string{"ready", "draining", "pending"}},
	"In trouble":                           {empty: "no VM was in trouble, and none was left over or drifted."},
	"VMs created and removed per hour":     {shows: []string{"nomad/batch + scale_out", "nomad/batch - scale-in"}},
	"Start of a VM, nine of ten, by phase": {shows: []string{"clone", "boot", "join"}},
	"Scales by outcome per hour":           {shows: []string{"in ok", "out ok"}},
	"Duration of Scales, nine of ten":      {shows: []string{"in", "out"}},
	"Drains, nine of ten":                  {shows: []string{"nomad/batch"}},
	"Age of removed VMs, median":           {shows: []string{"nomad/batch"}},
	"Back-off":                             {empty: "nothing failed, so that nothing waited."},
	"Protected VMs, and Leases held":       {shows: []string{"nomad/batch holds its Lease"}},
	"Requests per second":                  {shows: []string{"harvester get 200", "harvester post 201", "nomad get 200"}},
	"Latency of requests, 99 of 100, without blocking queries": {shows: []string{"harvester", "nomad"}},
	"Errors per hour":                                    {empty: "nothing went wrong."},
	"Since the pool was last observed":                   {shows: []string{"nomad/batch"}},
	"Plugins that run":                                   {shows: []string{""}},
	"Nodes that the work needs, and pending allocations": {empty: "the agent had no apm block."},
	"Queries per hour, and the age of what they read":    {empty: "the agent had no apm block."},
}

// recording is what one panel showed.
type recording struct {
	panel  prometheus.Panel
	series map[string][]prometheus.Sample // by legend, without NaN
}

// record asks Prometheus what each panel of the dashboard asks, over the run so far, and checks that
// it shows what it must.
func record(t *testing.T, s *harness.Stack, p *harness.Prometheus, end time.Time) []recording {
	t.Helper()
	all := must1(prometheus.Panels(filepath.Join(harness.Root, "examples", "grafana-dashboard.json")))(t)
	if len(all) != len(panels) {
		t.Errorf("the dashboard has %d panels, and this test knows %d", len(all), len(panels))
	}
	recordings := make([]recording, 0, len(all))
	for _, panel := range all {
		r := recording{panel, map[string][]prometheus.Sample{}}
		for _, target := range panel.Targets {
			answer, err := p.QueryRange(target.Expression(), p.Began, end, time.Second)
			if err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
			}
			for _, series := range answer {
				samples := slices.DeleteFunc(series.Samples, func(s prometheus.Sample) bool { return math.IsNaN(s.Value) })
				if len(samples) > 0 {
					// The examples' namespace, for the page.
					legend := strings.ReplaceAll(target.Legend(series.Metric), s.Namespace+"/", "nomad/")
					r.series[legend] = samples
				}
			}
		}
		r.check(t)
		recordings = append(recordings, r)
	}
	return recordings
}

func (r recording) check(t *testing.T) {
	t.Helper()
	want, known := panels[r.panel.Title]
	if !known {
		t.Errorf("say in this test what panel %q must show", r.panel.Title)
	}
	for _, beginning := range want.shows {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(r.series)), func(legend string) bool {
			return strings.HasPrefix(legend, beginning) && peak(r.series[legend]) != 0
		}) {
			t.Errorf("panel %q does not show %q: %v", r.panel.Title, beginning, slices.Sorted(maps.Keys(r.series)))
		}
	}
}

// peak is the value that is furthest from 0.
func peak(samples []prometheus.Sample) (most float64) {
	for _, s := range samples {
		if math.Abs(s.Value) > math.Abs(most) {
			most = s.Value
		}
	}
	return most
}

// checkAlerts: the rules are understood, and no alert of a run that was well has fired.
func checkAlerts(t *testing.T, p *harness.Prometheus, end time.Time) {
	t.Helper()
	rules := must1(p.Rules())(t)
	for _, rule := range rules {
		if rule.Health != "ok" {
			t.Errorf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
		}
	}
	fired, err := p.QueryRange(`ALERTS{alertstate="firing"}`, p.Began, end, time.Second)
	if err != nil || len(fired) > 0 {
		t.Errorf("fired while all was well: %v, %v", fired, err)
	}
}

// killPlugin begins after an agent's end: the alert that no plugin runs waits, no longer does once the
// next agent's plugin is scraped, and does again when that is killed. The agent does not start another.
func killPlugin(t *testing.T, s *harness.Stack, p *harness.Prometheus) {
	t.Helper()
	const alert = "HarvesterPluginAbsent"
	state := func() (string, error) {
		rules, err := p.Rules()
		for _, rule := range rules {
			if rule.Name == alert {
				return rule.State, err
			}
		}
		return "not loaded", err
	}
	await := func(wanted string) {
		t.Helper()
		harness.Eventually(t, 30*time.Second, alert+" is "+wanted, func() error {
			is, err := state()
			if err == nil && is != wanted {
				err = fmt.Errorf("it is %s", is)
			}
			return err
		})
	}
	await("pending")
	agent := s.StartAgent(t)
	await("inactive")
	agent.KillPlugin(t)
	await("pending")
}

// checkDashboardPage: docs/dashboard.md has each panel; with NOMAD_HARVESTER_UPDATE_DOCS=1 in the
// environment it and its picture are written anew.
func checkDashboardPage(t *testing.T, p *harness.Prometheus, recordings []recording, end time.Time) {
	t.Helper()
	file := filepath.Join(harness.Root, "docs", "dashboard.md")
	if os.Getenv("NOMAD_HARVESTER_UPDATE_DOCS") == "1" {
		must(t, os.WriteFile(file, []byte(page(recordings, p.Began, end)), 0o644))
		image := filepath.Join(harness.Root, "docs", "images", "dashboard.svg")
		must(t, os.WriteFile(image, []byte(picture(recordings, p.Began, end)), 0o644))
	}
	text := must1(os.ReadFile(file))(t)
	for _, r := range recordings {
		if !strings.Contains(string(text), "\n| "+r.panel.Title+" | ") {
			t.Errorf("%s lacks panel %q: run this test with NOMAD_HARVESTER_UPDATE_DOCS=1", file, r.panel.Title)
		}
	}
}

const introduction = `# The dashboard, with data

See what the panels of [examples/grafana-dashboard.json](../examples/grafana-dashboard.json) show:
Prometheus scraped the plugin every second while the real agent scaled a pool of simulated machines from 0 to
3, to 1 and to 0, was replaced, and made and removed one VM from a template.

![The panels of the dashboard, with the data of a test](images/dashboard.svg)

<!-- Written by TestAPoolGrowsAndShrinksWithItsPolicy in test/e2e with NOMAD_HARVESTER_UPDATE_DOCS=1 in its
     environment; the values are one run's. -->

The curves are %v from left to right, and rates per hour are extrapolated.

| Panel | Series that left 0 |
|---|---|
`

func page(recordings []recording, began, end time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, end.Sub(began).Round(10*time.Second))
	for _, r := range recordings {
		var left []string
		for _, legend := range slices.Sorted(maps.Keys(r.series)) {
			if peak(r.series[legend]) != 0 {
				left = append(left, legend)
			}
		}
		if len(left) == 0 {
			left = []string{"none: " + panels[r.panel.Title].empty}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", r.panel.Title, strings.Join(left, ", "))
	}
	return b.String()
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// rounded writes two digits of a value, and its unit.
func rounded(value float64, unit string) string {
	suffix := map[string]string{"s": " s", "reqps": "/s"}[unit]
	if value == 0 {
		return "0" + suffix
	}
	scale := math.Pow(10, math.Floor(math.Log10(math.Abs(value)))-1)
	return strconv.FormatFloat(math.Round(value/scale)*scale, 'f', max(0, -int(math.Round(math.Log10(scale)))), 64) + suffix
}
