// Package app is the app behind the gate in the integration tests: a real HTTP server whose behaviour a test
// scripts, and which keeps every request that reached it.
package app

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Request is one request that reached the app.
type Request struct {
	Header http.Header
	Body   string
}

// App is a running app.
type App struct {
	Addr string

	mu       sync.Mutex
	requests []Request
	respond  http.HandlerFunc
	arrived  chan struct{} // one token a request
}

// Start starts an app that answers with respond; the body is already read and can be had from Last.
func Start(tb testing.TB, respond http.HandlerFunc) *App {
	tb.Helper()
	a := &App{respond: respond, arrived: make(chan struct{}, 1<<16)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	a.Addr = l.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(a.serve)}
	go func() { _ = server.Serve(l) }()
	tb.Cleanup(func() { _ = server.Close() })
	return a
}

func (a *App) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // broken off on the way: not a request that the app has seen
	}
	a.mu.Lock()
	a.requests = append(a.requests, Request{Header: r.Header.Clone(), Body: string(body)})
	respond := a.respond
	a.mu.Unlock()
	a.arrived <- struct{}{}
	respond(w, r)
}

// Script changes how the app answers from now on.
func (a *App) Script(respond http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.respond = respond
}

// Requests gives all requests so far.
func (a *App) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Request(nil), a.requests...)
}

// Arrived waits until a request that was not waited for before has reached the app.
func (a *App) Arrived() { <-a.arrived }

// Text answers with a status and a text.
func Text(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// Cut closes the connection without an answer.
func Cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
