// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A limit of a Status that no busy machine reaches; the agent's own default is ten seconds.
const statusLimit = 30 * time.Second

// Calls for each of the numbers at once.
func forPools(begin, end int, call func(pool int)) {
	var calls sync.WaitGroup
	for pool := begin; pool < end; pool++ {
		calls.Add(1)
		go func() {
			defer calls.Done()
			call(pool)
		}()
	}
	calls.Wait()
}

// An API with a proxy before it, which delays and counts requests.
type slowAPI struct {
	server *httptest.Server
	path   string // requests whose path contains it take long
	takes  atomic.Int64
	open   atomic.Int32
	most   atomic.Int32

	mutex  sync.Mutex
	counts map[string]int
}

func newSlowAPI(t *testing.T, address string) *slowAPI {
	t.Helper()
	target := must1(url.Parse(address))(t)
	a := &slowAPI{counts: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	// The simulator closes a connection that is idle for five seconds, and a starved machine may use it then.
	transport := &http.Transport{DisableKeepAlives: true}
	proxy.Transport = transport
	proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() == nil { // the client is still there
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.WriteHeader(http.StatusBadGateway)
	}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.count(r)
		takes := time.Duration(0)
		if strings.Contains(r.URL.Path, a.path) {
			takes = time.Duration(a.takes.Load())
		}
		select {
		case <-time.After(takes):
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	a.server.Config.ConnState = a.connectionIs
	a.server.Start()
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
		transport.CloseIdleConnections() // the simulator's end waits for them
	})
	return a
}

func (a *slowAPI) connectionIs(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		open := a.open.Add(1)
		for most := a.most.Load(); open > most && !a.most.CompareAndSwap(most, open); most = a.most.Load() {
		}
	case http.StateClosed, http.StateHijacked:
		a.open.Add(-1)
	}
}

var idInPath = regexp.MustCompile(`[0-9a-f-]{36}|pool-[0-9a-z-]+|nomad-harvester-autoscaler-[0-9a-z-]+`)

// "GET /v1/nodes?index"
func (a *slowAPI) count(r *http.Request) {
	kind := r.Method + " " + idInPath.ReplaceAllString(r.URL.Path, "*")
	if r.URL.Query().Has("index") {
		kind += "?index"
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.counts[kind]++
}

func (a *slowAPI) asked(kind string) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.counts[kind]
}

func (a *slowAPI) reset() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	clear(a.counts)
}

func (a *slowAPI) requests() (total int, kinds string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var parts []string
	for kind, count := range a.counts {
		total += count
		parts = append(parts, fmt.Sprintf("%d %s", count, kind))
	}
	slices.Sort(parts)
	return total, strings.Join(parts, ", ")
}
