package caddy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
)

// attempt is one forwarding to the app. It runs on a goroutine of its own, because the sender must be answered
// at answer_within while the app goes on; the gate counts it (dedup.Gate.Drain) and App.Stop waits for it. It
// shares nothing with the request that it could outlive.
type attempt struct {
	*dedup.Attempt
	app     *App
	set     *settings
	logger  *zap.Logger
	request *http.Request
	cancel  context.CancelFunc
	rec     *recorder
	dialed  atomic.Bool
	sent    atomic.Int32
	done    chan *reply // receives the answer, once; buffered, so that nobody has to be there
	left    atomic.Bool // set by whoever comes first: the request, leaving before the end, or the end
	took    time.Duration
}

// forward runs the attempt and answers the sender: with its outcome, or at answer_within without.
func (h *Handler) forward(d *delivery, next caddyhttp.Handler) *reply {
	if _, err := d.app.hold(); err != nil { // the attempt's own: it may outlive the request's
		d.attempt.Leave()
		return storeUnavailable(err)
	}
	a := newAttempt(h, d)
	d.report.attempts = a.Count
	go a.run(next)

	timer := time.NewTimer(time.Until(d.answers))
	defer timer.Stop()
	reason := "the app has not answered within answer_within; the attempt goes on"
	select {
	case rep := <-a.done:
		d.report.forward = a.took
		return rep
	case <-d.r.Context().Done():
		reason = "the sender has hung up; the attempt goes on"
	case <-timer.C:
	}
	// Whoever is still inside a request keeps an ending process alive; the sender is answered late then.
	if caddy.Exiting() || !a.left.CompareAndSwap(false, true) {
		rep := <-a.done
		d.report.forward = a.took
		return rep
	}
	return retryLater(codeInProgress, d.set.retryAfter, reason)
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
		WroteHeaders: func() { a.sent.Add(1) },
	})
	a.request = forwardRequest(ctx, d, a)
	return a
}

// forwardRequest builds the request as the app gets it, with a replacer, variables and log fields of its own:
// those of the delivery are in use by the handlers around the gate, maybe after the sender was answered.
func forwardRequest(ctx context.Context, d *delivery, a *attempt) *http.Request {
	r := d.r.Clone(ctx)
	r.Header = forwardHeaders(d.r.Header, a.Attempt, d.answers)
	r.Trailer = nil
	r.TransferEncoding = nil
	r.ContentLength = int64(len(d.body))
	r.Body = http.NoBody
	if len(d.body) > 0 {
		// Not rewindable: an attempt leaves the gate at most once (no GetBody, ever).
		r.Body = io.NopCloser(bytes.NewReader(d.body))
	}
	r.GetBody = nil

	outer, _ := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	repl := caddy.NewReplacer()
	original := ctx.Value(caddyhttp.OriginalRequestCtxKey)
	vars, _ := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	r = caddyhttp.PrepareRequest(r, repl, a.rec, server)
	if outer != nil {
		repl.Map(outer.Get) // what earlier handlers set stays readable
	}
	if own, ok := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		maps.Copy(own, vars)
	}
	if original != nil {
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, original))
	}
	return r
}

// run forwards, decides, stores, and only then lets the answer go.
func (a *attempt) run(next caddyhttp.Handler) {
	defer a.app.release()
	defer a.cancel()
	began := time.Now()
	seen := a.call(next)
	a.took = time.Since(began)
	if seen.sent > 1 {
		a.logger.Warn("one attempt was sent to the app more than once: the next handler repeats requests",
			zap.String("source", a.Identity.Source), zap.String("event", a.Identity.Event), zap.Int("sent", seen.sent))
	}
	rep := a.conclude(classify(seen))
	if !a.left.CompareAndSwap(false, true) {
		a.report(rep)
	}
	a.done <- rep
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
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
				// The value may hold what the app sent; its type and the stack do not.
				a.logger.Error("panic in the next handler", zap.String("type", fmt.Sprintf("%T", p)),
					zap.ByteString("stack", debug.Stack()))
			}
		}
		seen.status = a.rec.status
		seen.verdict = a.rec.header.Get(headerOutcome)
		seen.dialed = a.dialed.Load()
		seen.sent = int(a.sent.Load())
	}()
	seen.err = next.ServeHTTP(a.rec, a.request)
	return seen
}

// conclude stores the outcome and gives the sender's answer. A 2xx leaves here only when its receipt is on
// disk. The request's context may be over by now; what is to be stored is stored all the same.
func (a *attempt) conclude(c concluded) *reply {
	ctx := context.WithoutCancel(a.request.Context())
	switch c.outcome {
	case outcomeCommitted:
		return a.final(a.Commit(ctx, a.rec.answer(a.set.receiptHeaders)))(resultCommitted)
	case outcomeRejected:
		return a.final(a.Reject(ctx, a.rec.answer(a.set.receiptHeaders)))(resultRejected)
	case outcomeAborted:
		if err := a.Abort(ctx); err != nil {
			return storeUnavailable(err)
		}
		return a.aborted(c)
	case outcomePending:
		a.Leave()
		return retryLater(codeInProgress, a.set.retryAfter, c.reason)
	default:
		a.Leave()
		reason := c.reason
		if errors.Is(a.request.Context().Err(), context.DeadlineExceeded) {
			reason = "forward_timeout is over: " + reason
		}
		return retryLater(codeInDoubt, min(a.set.policy.Lease-a.took, time.Minute), reason)
	}
}

// final answers with what is stored: this attempt's answer, or that of another attempt that was final first.
func (a *attempt) final(receipt dedup.Receipt, err error) func(result) *reply {
	return func(r result) *reply {
		switch {
		case err != nil:
			return storeUnavailable(err)
		case receipt.Attempt != 0 && !receipt.AnsweredBy(a.Number):
			return replay(receipt.Answer, resultRepeated)
		}
		return appAnswer(receipt.Answer, r)
	}
}

// aborted passes on the app's own refusal, with a Retry-After where trying again makes sense and it has none.
func (a *attempt) aborted(c concluded) *reply {
	status := a.rec.status
	switch {
	case status >= 300 && status < 400:
		return retryLater(codeUpstreamRedirect, a.set.retryAfter, c.reason)
	case status < 400:
		return retryLater(codeTemporaryFailure, a.set.retryAfter, c.reason)
	}
	answer := a.rec.answer(a.set.receiptHeaders)
	rep := appAnswer(&answer, resultAborted)
	rep.reason = c.reason
	if after := a.rec.header.Get("Retry-After"); after != "" && safeHeaderValue(after) {
		rep.header.Set("Retry-After", after)
	} else if status >= 500 || status == http.StatusTooManyRequests {
		rep.header.Set("Retry-After", retryAfter(a.set.retryAfter))
	}
	return rep
}
