package caddy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/failpoint"
)

// trace is what Go's transport tells of an attempt.
type trace struct {
	dialed    atomic.Bool // a connection was asked for
	connected atomic.Bool // one was had
	sent      atomic.Int32
}

// attempt is one forwarding to the app. It runs on a goroutine of its own, because the sender must be answered
// at answer_within while the app goes on; the gate counts it (dedup.Gate.Drain) and drainAtExit waits for it. What
// it may change of the request is its own (detach.go), for it may outlive the request.
type attempt struct {
	*dedup.Attempt
	app     *App
	set     *settings
	logger  *zap.Logger
	request *http.Request
	cancel  context.CancelFunc
	rec     *recorder
	trace
	once  sync.Once   // the attempt ends once, whatever still goes wrong after that
	done  chan *reply // receives the answer then; buffered, so that nobody has to be there
	later bool        // the answer is only that the app has the event: its confirmation may still come in time
	left  atomic.Bool // set by whoever comes first: the request, leaving before the end, or the end
	took  time.Duration
}

// launch starts the attempt with a hold of its own on the store. If it cannot, or panics, nothing was sent: the event
// is free again.
func (h *Handler) launch(d *delivery, next caddyhttp.Handler) (*attempt, error) {
	held, started := false, false
	defer func() {
		if !started {
			_ = d.attempt.Abort(context.WithoutCancel(d.r.Context()))
		}
		if held && !started {
			d.app.release()
		}
	}()
	if _, err := d.app.hold(); err != nil {
		return nil, err
	}
	held = true
	a := newAttempt(h, d)
	started = true
	go a.run(next)
	return a, nil
}

func newAttempt(h *Handler, d *delivery) *attempt {
	a := &attempt{
		Attempt: d.attempt,
		app:     d.app,
		set:     d.set,
		logger:  h.logger,
		rec:     newRecorder(d.set.maxReceipt),
		done:    make(chan *reply, 1),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.r.Context()), d.set.forwardTimeout)
	a.cancel = cancel
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { a.dialed.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { a.connected.Store(true) },
		WroteHeaders: func() { a.sent.Add(1); failpoint.Hit(failpoint.ForwardHeaders) },
		WroteRequest: func(httptrace.WroteRequestInfo) { failpoint.Hit(failpoint.ForwardSent) },
	})
	a.request = forwardRequest(ctx, d, a)
	return a
}

// run forwards, decides, stores, and only then lets the answer go.
func (a *attempt) run(next caddyhttp.Handler) {
	defer a.app.release()
	defer a.cancel()
	defer a.catch()
	began := time.Now()
	giveUp := time.AfterFunc(a.set.forwardTimeout+overtime, a.giveUp)
	seen := a.call(next)
	inTime := giveUp.Stop()
	if seen.sent > 1 {
		a.logger.Warn("requests were sent more than once for one attempt: the next handler repeats them",
			zap.String("source", a.Identity.Source), zap.String("event", a.Identity.Event), zap.Int("sent", seen.sent))
	}
	if !inTime {
		a.late(classify(seen), time.Since(began))
		return
	}
	a.took = time.Since(began)
	select {
	case <-a.Confirmed(): // a callback comes before any answer, whatever that says
		a.Leave()
		a.compare(classify(seen))
		a.end(a.confirmed())
	default:
		a.end(a.conclude(classify(seen)))
	}
}

// catch keeps a fault of ours, or of a store of a third party, from ending the process: there is no server around
// this goroutine that would.
func (a *attempt) catch() {
	p := recover()
	if p == nil {
		return
	}
	a.logger.Error("panic while an attempt was ended", zap.String("type", fmt.Sprintf("%T", p)), zap.ByteString("stack", debug.Stack()))
	a.Leave()
	a.end(storeUnavailable(errors.New("panic")))
}

// overtime is what a handler gets after forward_timeout to notice it. One that does not (FastCGI looks at no
// deadline) is not waited for.
const overtime = time.Second

// giveUp ends an attempt whose handler does not come back.
func (a *attempt) giveUp() {
	defer a.catch()
	a.took = a.set.forwardTimeout + overtime
	a.Leave()
	a.end(retryLater(codeInDoubt, min(a.set.policy.Lease-a.took, time.Minute), "forward_timeout is over and the next handler does not end"))
}

// late stores what a handler says after its attempt was given up: an attempt that is not closed may confirm, however
// late. What it did not do is nobody's news any more, a newer attempt may be running.
func (a *attempt) late(c concluded, took time.Duration) {
	var err error
	switch ctx := context.WithoutCancel(a.request.Context()); c.outcome {
	case outcomeCommitted:
		_, err = a.Confirm(ctx, dedup.Commit, a.rec.answer(a.set.receiptHeaders))
	case outcomeRejected:
		_, err = a.Confirm(ctx, dedup.Reject, a.rec.answer(a.set.receiptHeaders))
	}
	a.logger.Warn("the next handler came back long after forward_timeout",
		zap.String("source", a.Identity.Source), zap.String("event", a.Identity.Event), zap.String("outcome", string(c.outcome)),
		zap.Duration("forward", took), zap.Error(err))
}

// end hands the answer over, or logs it where the request has gone before.
func (a *attempt) end(rep *reply) {
	a.once.Do(func() {
		if !a.left.CompareAndSwap(false, true) {
			a.report(rep)
		}
		a.done <- rep
	})
}

// report logs the end of an attempt whose request has gone before it.
func (a *attempt) report(rep *reply) {
	logAt(a.logger, rep, "attempt ended",
		zap.String("source", a.Identity.Source), zap.String("event", a.Identity.Event), zap.String("type", a.Identity.Type),
		zap.Uint32("attempt", a.Count), zap.Duration("forward", a.took))
}

// call calls the next handler and takes error, panic, status and trace together.
func (a *attempt) call(next caddyhttp.Handler) (seen observed) {
	defer func() {
		if p := recover(); p != nil {
			seen.panicked = true
			a.rec.drop()                   // half a body helps nobody
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
				// The value may hold what the app sent; its type and the stack do not.
				a.logger.Error("panic in the next handler", zap.String("type", fmt.Sprintf("%T", p)),
					zap.ByteString("stack", debug.Stack()))
			}
		}
		seen.status = a.rec.status
		seen.verdict = strings.Join(a.rec.header.Values(headerOutcome), ", ") // two are no word
		seen.callback = a.set.callback != nil
		seen.dialed, seen.connected = a.dialed.Load(), a.connected.Load()
		seen.sent = int(a.sent.Load())
	}()
	failpoint.Hit(failpoint.ForwardBefore)
	seen.err = next.ServeHTTP(a.rec, a.request)
	failpoint.Hit(failpoint.ForwardAnswered)
	return seen
}
