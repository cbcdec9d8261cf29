package caddy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func TestOutcomeOfAnAttempt(t *testing.T) {
	t.Parallel()
	dial := caddyhttp.Error(http.StatusBadGateway, errors.New("connection refused"))
	for _, c := range []struct {
		name string
		seen observed
		want outcome
	}{
		{"a refused connection sent nothing", observed{err: dial, dialed: true}, outcomeAborted},
		{"a deadline while dialing sent nothing", observed{err: caddyhttp.Error(504, context.DeadlineExceeded), dialed: true}, outcomeAborted},
		{"no healthy upstream sent nothing", observed{err: caddyhttp.Error(503, errors.New("no upstreams available"))}, outcomeAborted},
		{"a connection lost after the request", observed{err: caddyhttp.Error(502, io.EOF), dialed: true, sent: 1}, outcomeInDoubt},
		{"our deadline after the request", observed{err: caddyhttp.Error(504, context.DeadlineExceeded), dialed: true, sent: 1}, outcomeInDoubt},
		{"our deadline between connecting and sending", observed{err: caddyhttp.Error(504, context.DeadlineExceeded), dialed: true, connected: true}, outcomeInDoubt},
		{"a dial error on a retry after a try that was sent", observed{err: dial, dialed: true, sent: 1}, outcomeInDoubt},
		{"an answer lost half-way", observed{panicked: true, status: 200, dialed: true, sent: 1}, outcomeInDoubt},
		{"a panic before anything was sent", observed{panicked: true}, outcomeInDoubt},
		{"a gateway error without a trace tells nothing", observed{err: caddyhttp.Error(502, errors.New("fastcgi"))}, outcomeInDoubt},
		{"an error of no kind tells nothing", observed{err: errors.New("odd")}, outcomeInDoubt},
		{"a handler that refuses did nothing", observed{err: caddyhttp.Error(401, errors.New("login"))}, outcomeAborted},
		{"nothing handled it", observed{}, outcomeAborted},
		{"no final answer after the request", observed{dialed: true, sent: 1}, outcomeInDoubt},
		{"a 200", observed{status: 200, dialed: true, sent: 1}, outcomeCommitted},
		{"a 204 of a handler without a connection", observed{status: 204}, outcomeCommitted},
		{"a redirect is no success", observed{status: 302, sent: 1}, outcomeAborted},
		{"a 500", observed{status: 500, sent: 1}, outcomeAborted},
		{"a 404", observed{status: 404, sent: 1}, outcomeAborted},
		{"a 503 after the request was sent twice", observed{status: 503, sent: 2}, outcomeInDoubt},
		{"a 200 after the request was sent twice", observed{status: 200, sent: 2}, outcomeCommitted},
		{"aborted under a 200", observed{status: 200, verdict: "aborted", sent: 1}, outcomeAborted},
		{"committed under a 500", observed{status: 500, verdict: "committed", sent: 1}, outcomeCommitted},
		{"rejected", observed{status: 422, verdict: "rejected", sent: 1}, outcomeRejected},
		{"pending", observed{status: 202, verdict: "pending", sent: 1}, outcomePending},
		{"a verdict under a redirect", observed{status: 302, verdict: "committed", sent: 1}, outcomeInDoubt},
		{"two verdicts", observed{status: 200, verdict: "committed, aborted", sent: 1}, outcomeInDoubt},
		{"an unknown verdict", observed{status: 200, verdict: "done", sent: 1}, outcomeInDoubt},
		{"the gate's own word is no verdict", observed{status: 200, verdict: "in_doubt", sent: 1}, outcomeInDoubt},
		{"a verdict whose body was lost half-way", observed{panicked: true, status: 200, verdict: "committed", sent: 1}, outcomeCommitted},
		{"aborted, and the body lost", observed{panicked: true, status: 500, verdict: "aborted", sent: 1}, outcomeAborted},
		{"an unknown verdict, and the body lost", observed{panicked: true, status: 200, verdict: "done", sent: 1}, outcomeInDoubt},
		{"a 200 where a callback confirms", observed{status: 200, callback: true, sent: 1}, outcomeAccepted},
		{"a 204 where a callback confirms", observed{status: 204, callback: true, sent: 1}, outcomeAccepted},
		{"committed where a callback confirms", observed{status: 200, verdict: "committed", callback: true, sent: 1}, outcomeCommitted},
		{"pending where a callback confirms", observed{status: 202, verdict: "pending", callback: true, sent: 1}, outcomePending},
		{"aborted where a callback confirms", observed{status: 200, verdict: "aborted", callback: true, sent: 1}, outcomeAborted},
		{"the gate's own word where a callback confirms", observed{status: 200, verdict: "accepted", callback: true, sent: 1}, outcomeInDoubt},
		{"a 500 where a callback confirms", observed{status: 500, callback: true, sent: 1}, outcomeAborted},
		{"a redirect where a callback confirms", observed{status: 303, callback: true, sent: 1}, outcomeAborted},
		{"a lost answer where a callback confirms", observed{panicked: true, status: 200, callback: true, sent: 1}, outcomeInDoubt},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := classify(c.seen); got.outcome != c.want || got.reason == "" {
				t.Errorf("got %s (%q), want %s with a reason", got.outcome, got.reason, c.want)
			}
		})
	}
}

// TestWhatIsAskedAbout: a complete answer that is not a 2xx and brings no verdict, and nothing else.
func TestWhatIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen observed
		want bool
	}{
		{observed{status: 500, sent: 1}, true},
		{observed{status: 404, sent: 1, callback: true}, true},
		{observed{status: 302, sent: 1}, true},
		{observed{status: 500, verdict: "aborted", sent: 1}, false},
		{observed{status: 200, verdict: "aborted", sent: 1}, false},
		{observed{err: errors.New("refused"), dialed: true}, false},
		{observed{err: caddyhttp.Error(503, errors.New("no upstreams available"))}, false},
		{observed{}, false},
	} {
		if got := classify(c.seen); got.ask != c.want {
			t.Errorf("%+v: %+v", c.seen, got)
		}
	}
}
