// SPDX-License-Identifier: Apache-2.0

// Package examples evaluates the query of examples/policy.hcl with Prometheus' own engine, and looks
// at the examples that make an image.
package examples

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Prometheus' series, one per line in the notation of its own tests, scraped every ten seconds from
// 0 on. It writes "stale" when a target can no longer be scraped.
const scrapeInterval = 10 * time.Second

// A leader with one batch job, and a job that the policy ignores.
const healthy = `
up{job="nomad",instance="server-1"} 1x11
nomad_nomad_job_status_running{job="nomad",instance="server-1"} 2x11
nomad_nomad_job_summary_queued{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} 3x11
nomad_nomad_job_summary_starting{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} 1x11
nomad_nomad_job_summary_running{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} 5x11
nomad_nomad_job_summary_failed{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} 40x11
nomad_nomad_job_summary_running{job="nomad",instance="server-1",namespace="default",exported_job="web",task_group="g"} 80x11
`

const noAnswer = -1

func TestTheAnswerIsWhatTheBatchJobsNeedFourOnAVMOrNone(t *testing.T) {
	for name, test := range map[string]struct {
		series string
		want   float64
	}{
		"a batch job":                   {healthy, 3},
		"another name of the scrape":    {strings.ReplaceAll(healthy, `job="nomad"`, `job="nomad-servers"`), 3},
		"an election: not twice":        {healthy + strings.ReplaceAll(healthy, "server-1", "server-2"), 3},
		"no job":                        {`nomad_nomad_job_status_running{job="nomad",instance="server-1"} 0x11`, 0},
		"no telemetry":                  {``, noAnswer},
		"a server that cannot be asked": {`up{job="nomad",instance="server-1"} 0x11`, noAnswer},
		"no batch job": {`
nomad_nomad_job_status_running{job="nomad",instance="server-1"} 1x11
nomad_nomad_job_summary_running{job="nomad",instance="server-1",namespace="default",exported_job="web",task_group="g"} 80x11
`, 0},
		"clients alone": {`
up{job="nomad",instance="client-1"} 1x11
nomad_client_allocs_running{job="nomad",instance="client-1"} 4x11
`, noAnswer},
		"servers without a leader": {`
up{job="nomad",instance="server-1"} 1x11
nomad_runtime_num_goroutines{job="nomad",instance="server-1"} 100x11
`, noAnswer},
	} {
		t.Run(name, func(t *testing.T) { expect(t, test.series, 60*time.Second, test.want) })
	}
}

func TestDemandComesFromZeroAndGoesBackToIt(t *testing.T) {
	series := `
nomad_nomad_job_status_running{job="nomad",instance="server-1"} 0 0 1 1 1 0 0
nomad_nomad_job_summary_queued{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} _ _ 9 1 0 0 stale
nomad_nomad_job_summary_running{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} _ _ 0 8 4 0 stale
`
	for i, want := range []float64{0, 0, 3, 3, 1, 0, 0} {
		expect(t, series, time.Duration(i)*scrapeInterval, want)
	}
}

func TestAServerThatGoesDownIsNoAnswerUntilItIsBack(t *testing.T) {
	series := `
up{job="nomad",instance="server-1"} 1 1 0 0 0 1 1
nomad_nomad_job_status_running{job="nomad",instance="server-1"} 1 1 stale _ _ 1 1
nomad_nomad_job_summary_running{job="nomad",instance="server-1",namespace="default",exported_job="batch-a",task_group="g"} 9 9 stale _ _ 9 9
`
	for i, want := range []float64{3, 3, noAnswer, noAnswer, noAnswer, 3, 3} {
		expect(t, series, time.Duration(i)*scrapeInterval, want)
	}
}

// Series that end without a stale marker: Prometheus stopped scraping. It looks back five minutes.
func TestAPrometheusThatStoppedScrapingIsNoAnswer(t *testing.T) {
	expect(t, healthy, 20*time.Minute, noAnswer)
}

// The name on which the guard depends is misspelt.
func TestAGuardThatNothingMatchesIsNoAnswer(t *testing.T) {
	query := strings.Replace(policyQuery(t), "job_status_running", "job_status_runing", 1)
	if got := answer(t, query, healthy, 60*time.Second); got != noAnswer {
		t.Errorf("the answer is %v", got)
	}
}

func expect(t *testing.T, series string, at time.Duration, want float64) {
	t.Helper()
	if got := answer(t, policyQuery(t), series, at); got != want {
		t.Errorf("after %v: %v, want %v (%v: no answer)", at, got, want, noAnswer)
	}
}

// The query as the agent sends it.
func policyQuery(t *testing.T) string {
	t.Helper()
	policy := read(t, "policy.hcl")
	if queries := strings.Count(policy, "<<-EOQ"); queries != 1 {
		t.Fatalf("%d queries in examples/policy.hcl, want 1", queries)
	}
	return match(t, policy, `(?s)query\s*=\s*<<-EOQ\n(.*?)\n\s*EOQ\n`)
}

// The one value that the agent reads, or noAnswer; it refuses several
// (hashicorp/nomad-autoscaler:plugins/builtin/apm/prometheus/plugin/plugin.go, Query).
func answer(t *testing.T, query, series string, at time.Duration) float64 {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	defer engine.Close()
	question, err := engine.NewInstantQuery(context.Background(), recorded(t, series), nil, query, time.Unix(0, 0).Add(at))
	if err != nil {
		t.Fatal(err)
	}
	defer question.Close()
	vector, err := question.Exec(context.Background()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	if len(vector) == 0 {
		return noAnswer
	}
	if len(vector) > 1 {
		t.Fatalf("%d values: %v", len(vector), vector)
	}
	return vector[0].F
}

func recorded(t *testing.T, text string) storage.Queryable {
	t.Helper()
	var all []promql.Series
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		metric, values, err := parser.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		series := promql.Series{Metric: metric}
		for i, value := range values {
			if !value.Omitted {
				at := (time.Duration(i) * scrapeInterval).Milliseconds()
				series.Floats = append(series.Floats, promql.FPoint{T: at, F: value.Value})
			}
		}
		all = append(all, series)
	}
	return storage.QueryableFunc(func(_, _ int64) (storage.Querier, error) {
		return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &seriesSet{left: slices.DeleteFunc(slices.Clone(all), func(series promql.Series) bool {
				return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) })
			})}
		}}, nil
	})
}

type seriesSet struct {
	left []promql.Series
	at   storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = promql.NewStorageSeries(s.left[0]), s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.at }

func (*seriesSet) Err() error { return nil }

func (*seriesSet) Warnings() annotations.Annotations { return nil }
