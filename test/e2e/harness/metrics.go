// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Metrics answers every query of Prometheus' HTTP API with one number, which the
// agent's pass-through strategy uses as the desired count, or with no data
// (prometheus/prometheus:docs/querying/api.md).
type Metrics struct {
	URL    string
	wanted atomic.Int64 // negative: no data
	of     sync.Map     // by query: what is wanted in its place
	asked  atomic.Int64
}

func startMetrics(t testing.TB) *Metrics {
	t.Helper()
	m := &Metrics{}
	answer := func(kind string, sample func(pair []any) Object) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m.asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			result := []Object{}
			wanted := m.wanted.Load()
			if of, known := m.of.Load(r.FormValue("query")); known {
				wanted = int64(of.(int))
			}
			if wanted >= 0 {
				series := sample([]any{time.Now().Unix(), fmt.Sprint(wanted)})
				series["metric"] = Object{}
				result = append(result, series)
			}
			_ = json.NewEncoder(w).Encode(Object{"status": "success", "data": Object{"resultType": kind, "result": result}})
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query", answer("vector", func(pair []any) Object { return Object{"value": pair} }))
	mux.HandleFunc("/api/v1/query_range", answer("matrix", func(pair []any) Object { return Object{"values": [][]any{pair}} }))
	listener := must[net.Listener](t, "metrics")(net.Listen("tcp", loopback+":0"))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	m.URL = "http://" + listener.Addr().String()
	return m
}

// Want sets the count that the policy requests from now on.
func (m *Metrics) Want(count int) { m.wanted.Store(int64(count)) }

// WantOf sets the count of the policies whose query is this one.
func (m *Metrics) WantOf(query string, count int) { m.of.Store(query, count) }

// Fail makes every query return no data from now on, like the query of
// examples/policy.hcl while Nomad's metrics are missing.
func (m *Metrics) Fail() { m.wanted.Store(-1) }
