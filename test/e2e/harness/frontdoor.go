// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// FrontDoor is a proxy through which the plugin reaches Harvester: the Kubernetes
// API below a path, as behind Rancher. It enforces strict validation of writes, so
// that a field that the API would silently drop is an error, and records requests.
type FrontDoor struct {
	URL string

	lock     sync.Mutex
	requests []Request
	before   func(*http.Request)
}

// Request is a request that passed the front door.
type Request struct {
	Time              time.Time
	Method, Path, URL string
	Code              int
}

const frontDoorPath = "/k8s/clusters/local"

func startFrontDoor(t testing.TB, api *Kube, certificates *Certificates) *FrontDoor {
	t.Helper()
	target := must[*url.URL](t, "API server")(url.Parse(api.URL))
	door := &FrontDoor{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
		},
		Transport:     api.HTTP.Transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(logWriter{t}, "front door: ", 0),
	}
	handler := http.StripPrefix(frontDoorPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
			query := r.URL.Query()
			query.Set("fieldValidation", "Strict")
			r.URL.RawQuery = query.Encode()
		}
		door.lock.Lock()
		before := door.before
		door.lock.Unlock()
		if before != nil {
			before(r)
		}
		recorder := &codeRecorder{ResponseWriter: w, code: http.StatusOK}
		proxy.ServeHTTP(recorder, r)
		door.lock.Lock()
		defer door.lock.Unlock()
		door.requests = append(door.requests, Request{time.Now(), r.Method, r.URL.Path, r.URL.String(), recorder.code})
	}))
	listener := must[net.Listener](t, "front door")(tls.Listen("tcp", loopback+":0", &tls.Config{Certificates: []tls.Certificate{certificates.Server}}))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(logWriter{t}, "front door: ", 0)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	door.URL = "https://" + listener.Addr().String() + frontDoorPath
	return door
}

// Before sets a function that is called before each request is forwarded; nil: none.
func (d *FrontDoor) Before(f func(*http.Request)) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.before = f
}

// Requests returns the recorded requests.
func (d *FrontDoor) Requests() []Request {
	d.lock.Lock()
	defer d.lock.Unlock()
	return append([]Request(nil), d.requests...)
}

type codeRecorder struct {
	http.ResponseWriter
	code int
}

func (r *codeRecorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController flush watches.
func (r *codeRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// logWriter writes the errors of the standard library's servers to the test's log.
type logWriter struct{ t testing.TB }

func (w logWriter) Write(line []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}
