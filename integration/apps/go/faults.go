package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// crash ends the process, as kill -9 would, when it passes a point for the n-th time. The tests set it by
// EINLASS_APP_CRASH=before_commit|after_commit|after_callback|before_answer, with :N for another than the first time.
type crash struct {
	point string
	left  atomic.Int64
}

// withFaults puts the points into an app; without the variable it changes nothing.
func withFaults(a *app) http.Handler {
	text := os.Getenv("EINLASS_APP_CRASH")
	if text == "" {
		return a
	}
	point, times, _ := strings.Cut(text+":1", ":")
	n, err := strconv.ParseInt(strings.TrimSuffix(times, ":1"), 10, 64)
	switch point {
	case "before_commit", "after_commit", "after_callback", "before_answer":
	default:
		n = 0
	}
	if err != nil || n < 1 {
		log.Fatalf("EINLASS_APP_CRASH=%s: not a point", text)
	}
	c := &crash{point: point}
	c.left.Store(n)
	commit, transport := a.store.commit, a.client.Transport
	a.store.commit = func(tx *sql.Tx) error {
		c.pass("before_commit")
		err := commit(tx)
		c.pass("after_commit")
		return err
	}
	a.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := transport.RoundTrip(r)
		if err == nil {
			fmt.Printf("told %s at=%d %s %d\n", r.URL.Query().Get("event"), time.Now().UnixMilli(), outcomeIn(r), resp.StatusCode)
			c.pass("after_callback")
		}
		return resp, err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w = answering{w, c}
			defer trace(r.Header)()
		}
		a.ServeHTTP(w, r)
	})
}

// trace writes a line when an attempt arrives and one when it is through: whether it had to come is for the test to judge.
func trace(h http.Header) (end func()) {
	at := attemptOf(h)
	name := at.id + " " + at.number
	fmt.Printf("begin %s at=%d in_doubt=%q process=%q\n", name, time.Now().UnixMilli(), at.inDoubt, h.Get("Gate-Process"))
	return func() { fmt.Printf("end %s\n", name) }
}

// outcomeIn is what a callback says.
func outcomeIn(r *http.Request) string {
	var rec receipt
	if body, err := r.GetBody(); err == nil {
		_ = json.NewDecoder(body).Decode(&rec)
	}
	return rec.Outcome
}

func (c *crash) pass(point string) {
	if point == c.point && c.left.Add(-1) == 0 {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // it may take a moment
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering passes before_answer when an answer begins.
type answering struct {
	http.ResponseWriter
	crash *crash
}

func (w answering) WriteHeader(status int) {
	w.crash.pass("before_answer")
	w.ResponseWriter.WriteHeader(status)
}
