package caddy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// outcome is what an attempt came to, as far as the gate can know.
type outcome string

const (
	outcomeCommitted outcome = "committed"
	outcomeAborted   outcome = "aborted"
	outcomeRejected  outcome = "rejected"
	outcomePending   outcome = "pending"
	outcomeAccepted  outcome = "accepted" // `confirm callback` only: a 2xx, the confirmation is to come
	outcomeInDoubt   outcome = "in_doubt"
)

// observed is all that can be seen of an attempt from the gate's side.
type observed struct {
	err      error  // what the next handler returned
	panicked bool   // it panicked; http.ErrAbortHandler says that an answer was lost half-way
	status   int    // the recorded final status, 0 for none
	verdict  string // the app's Webhook-Gate-Outcome
	sent     int    // how often request headers left

	callback  bool // the app confirms by callback, not by a 2xx
	dialed    bool // a Go HTTP transport was asked for a connection
	connected bool // and got one
}

// concluded is an outcome with its reason for the log.
type concluded struct {
	outcome outcome
	reason  string
	ask     bool // a complete answer without a verdict, not a 2xx: the outcome question first, where it is asked
}

// classify decides the outcome of an attempt. It is the only place that looks at error, panic, status and
// connection trace. What was sent is told by the trace, never by the type of an error: an error of dialing
// may follow a first try that was sent.
func classify(o observed) concluded {
	switch {
	case o.panicked && o.verdict != "" && o.status != 0:
		// What the app said stands, however much of its answer came: at level 1 nothing else keeps the event from
		// being done twice.
		c := classifyAnswer(o)
		c.reason += "; the body of its answer was lost half-way"
		return c
	case o.panicked:
		return concluded{outcome: outcomeInDoubt, reason: "the app's answer was lost half-way"}
	case o.err != nil:
		return classifyError(o)
	case o.status == 0:
		return classifyNothing(o)
	}
	return classifyAnswer(o)
}

// classifyError: nothing was answered.
func classifyError(o observed) concluded {
	// A deadline that strikes right after the connection was had may leave a request on its way unseen.
	if o.sent > 0 || o.connected && errors.Is(o.err, context.DeadlineExceeded) {
		return concluded{outcome: outcomeInDoubt, reason: "the request was sent, the answer did not come: " + errorText(o.err)}
	}
	var dial reverseproxy.DialError
	if o.dialed || errors.As(o.err, &dial) {
		return concluded{outcome: outcomeAborted, reason: "nothing was sent: " + errorText(o.err)}
	}
	// No transport of Go's was seen. A handler that refuses (no healthy upstream, an `error` directive, a
	// login) gave a complete answer; what a gateway error hides (FastCGI) cannot be told.
	var refused caddyhttp.HandlerError
	if errors.As(o.err, &refused) {
		switch refused.StatusCode {
		case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInternalServerError, 0, 499:
		default:
			return concluded{outcome: outcomeAborted, reason: "the next handler refused with status " + strconv.Itoa(refused.StatusCode)}
		}
	}
	return concluded{outcome: outcomeInDoubt, reason: "the next handler failed and does not tell whether anything was sent"}
}

// classifyNothing: the next handler returned well and wrote no final status.
func classifyNothing(o observed) concluded {
	if o.sent > 0 {
		return concluded{outcome: outcomeInDoubt, reason: "the app switched protocols or gave no final answer"}
	}
	return concluded{outcome: outcomeAborted, reason: "no handler answered: is there a `reverse_proxy` behind webhook_gate?"}
}

// classifyAnswer: the app gave a complete answer. Its own verdict wins over the status.
func classifyAnswer(o observed) concluded {
	status := "the app answered " + strconv.Itoa(o.status)
	switch outcome(o.verdict) {
	case outcomeCommitted, outcomeAborted, outcomeRejected, outcomePending:
		if o.status > 599 {
			return concluded{outcome: outcomeInDoubt, reason: status + " with a verdict: that is no status"}
		}
		if o.status >= 300 && o.status < 400 {
			return concluded{outcome: outcomeInDoubt, reason: status + " with a verdict: a redirect answers nothing"}
		}
		return concluded{outcome: outcome(o.verdict), reason: "the app said " + o.verdict}
	case "":
	default:
		return concluded{outcome: outcomeInDoubt, reason: "the app's " + headerOutcome + " is not a word the gate knows"}
	}
	switch {
	case o.status >= 200 && o.status < 300 && o.callback:
		return concluded{outcome: outcomeAccepted, reason: status + ", its confirmation is to come"}
	case o.status >= 200 && o.status < 300:
		return concluded{outcome: outcomeCommitted, reason: status}
	case o.sent > 1:
		return concluded{outcome: outcomeInDoubt, reason: status + ", but requests were sent more than once: the first may have been done"}
	}
	return concluded{outcome: outcomeAborted, reason: status, ask: true}
}

// errorText says what kind of error it was. Go's transport quotes what an app has sent where it is malformed, so the
// text itself is taken only from errors that are about addresses and system calls.
func errorText(err error) string {
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &dns):
		return dns.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	var h caddyhttp.HandlerError
	if errors.As(err, &h) && h.Err != nil {
		err = h.Err
	}
	return fmt.Sprintf("an error of type %T", err)
}
