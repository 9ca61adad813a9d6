// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs a real Prometheus on the plugin's metrics with the project's own alert
// rules, and asks it what the panels of the project's dashboard ask. The contract tests and the
// end-to-end tests share it.
package prometheus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Command is a Prometheus, not started yet, that scrapes one target and evaluates a file of rules as
// often. Its configuration and its data are in dir.
func Command(program, dir, listen, target, rules string, every time.Duration) (*exec.Cmd, error) {
	config := fmt.Sprintf("global: {scrape_interval: %v, evaluation_interval: %v}\nrule_files: [%q]\n"+
		"scrape_configs:\n- job_name: harvester\n  static_configs: [{targets: [%q]}]\n", every, every, rules, target)
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return exec.Command(program, "--config.file="+file, "--web.listen-address="+listen,
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus-data")), nil
}

// Server is the URL of a Prometheus that runs.
type Server string

// Sample is a value at a time; Value may be NaN.
type Sample struct {
	At    float64 // seconds since 1970
	Value float64
}

// UnmarshalJSON reads [seconds, "value"].
func (s *Sample) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &[]any{&s.At, &value}); err != nil {
		return err
	}
	var err error
	s.Value, err = strconv.ParseFloat(value, 64)
	return err
}

// Series is one series of an answer: a Sample of Query, Samples of QueryRange.
type Series struct {
	Metric  map[string]string
	Sample  Sample   `json:"value"`
	Samples []Sample `json:"values"`
}

// Query evaluates an expression now.
func (s Server) Query(expression string) ([]Series, error) {
	return s.series("query", url.Values{"query": {expression}})
}

// QueryRange evaluates an expression at every step from start to end.
func (s Server) QueryRange(expression string, start, end time.Time, step time.Duration) ([]Series, error) {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	return s.series("query_range", url.Values{"query": {expression}, "start": {seconds(start)}, "end": {seconds(end)},
		"step": {step.String()}})
}

func (s Server) series(kind string, arguments url.Values) ([]Series, error) {
	var data struct{ Result []Series }
	err := s.get("/api/v1/"+kind+"?"+arguments.Encode(), &data)
	if err != nil {
		err = fmt.Errorf("%s: %w", arguments.Get("query"), err)
	}
	return data.Result, err
}

// Rule is a rule as the server has loaded it.
type Rule struct{ Name, State, Health, LastError string }

// Rules returns the rules that the server evaluates.
func (s Server) Rules() (rules []Rule, err error) {
	var data struct{ Groups []struct{ Rules []Rule } }
	err = s.get("/api/v1/rules", &data)
	for _, group := range data.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, err
}

func (s Server) get(path string, data any) error {
	reply, err := http.Get(string(s) + path)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", reply.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", reply.Status, answer.Error)
	}
	return nil
}

// Panel is a panel of a Grafana dashboard.
type Panel struct {
	Title       string
	Targets     []Target
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// Target is a query of a panel.
type Target struct{ Expr, LegendFormat string }

// Expression is the query for all pools.
func (t Target) Expression() string { return strings.ReplaceAll(t.Expr, "$pool", ".*") }

// Legend is the name that Grafana shows for a series.
func (t Target) Legend(labels map[string]string) string {
	legend := t.LegendFormat
	for name, value := range labels {
		legend = strings.ReplaceAll(legend, "{{"+name+"}}", value)
	}
	return legend
}

// Panels reads the panels of a Grafana dashboard; one without a query is an error.
func Panels(file string) ([]Panel, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			return nil, fmt.Errorf("%s: panel %q shows nothing", file, panel.Title)
		}
	}
	return dashboard.Panels, nil
}
