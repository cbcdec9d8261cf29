package dedup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Attempt is one forwarding of an event to the app, reserved durably. Its owner ends it by exactly one of Commit,
// Reject, Abort and Leave. Further calls, from any goroutine, wait for the first and change nothing.
type Attempt struct {
	Number   uint64   // fences: grows with every attempt of the event
	Count    uint32   // as people count: 1, 2, ...
	Token    string   // 32 hex digits, a secret of gate and app
	InDoubt  bool     // the end of an earlier attempt is unknown
	Identity Identity // of the event: with Guard, the key and type under which its content first came

	gate   *Gate
	flight *flight
	lease  time.Time

	once    sync.Once
	receipt Receipt // what the end has led to
	err     error
}

func newAttempt(g *Gate, f *flight, id Identity, token string, r Receipt) *Attempt {
	id = id.normal()
	id.Key, id.Type = r.Key, r.Type
	return &Attempt{
		Number: r.Attempt, Count: r.Attempts, Token: token, InDoubt: r.InDoubtBefore, Identity: id,
		gate: g, flight: f, lease: r.Lease,
	}
}

// String names the attempt without its token.
func (a *Attempt) String() string {
	return fmt.Sprintf("attempt %d of %q/%q", a.Count, a.Identity.Source, a.Identity.Event)
}

// GoString is String: no verb prints the token.
func (a *Attempt) GoString() string { return a.String() }

// Commit stores the app's answer (T3) and returns the receipt, which is on disk then. If another attempt was final
// first, that receipt stands and is returned: see [Receipt.AnsweredBy]. After an error the attempt is left in doubt,
// as by Leave. A second call returns what the first end has stored, or ErrEnded if that was no answer.
//
// ctx bounds the waiting for the store; it should not end because the sender hangs up.
func (a *Attempt) Commit(ctx context.Context, answer Answer) (Receipt, error) {
	return a.final(ctx, Commit, answer)
}

// Reject stores the app's refusal (T6), as Commit does its answer.
func (a *Attempt) Reject(ctx context.Context, answer Answer) (Receipt, error) {
	return a.final(ctx, Reject, answer)
}

// Abort frees the event for its next delivery (T4), durably: the app has done nothing and will do nothing of it.
// It moves nothing if a newer attempt was made. After an error the attempt is left in doubt. If it has ended before,
// Abort returns nil.
func (a *Attempt) Abort(ctx context.Context) error {
	if a.end(ctx, &Finish{Outcome: Abort}) {
		return a.err
	}
	return nil
}

// Leave ends the attempt without an outcome: its end is unknown. Nothing moves; reservation and lease stand, and
// whoever waits for it is told that the event is in doubt.
func (a *Attempt) Leave() {
	a.end(context.Background(), nil)
}

func (a *Attempt) final(ctx context.Context, outcome Outcome, answer Answer) (Receipt, error) {
	first := a.end(ctx, &Finish{Outcome: outcome, Answer: answer, Learned: LearnedResponse})
	if !first && a.err == nil && !a.receipt.State.Final() {
		return Receipt{}, ErrEnded
	}
	return a.receipt.clone(), a.err
}

// end runs the first end of the attempt and tells whether this call was it.
func (a *Attempt) end(ctx context.Context, f *Finish) (first bool) {
	a.once.Do(func() {
		first = true
		defer a.gate.flights.end(a.flight) // after the outcome is durable
		if f == nil {
			return
		}
		f.Key, f.Attempt, f.At = a.Identity.Key, a.Number, a.gate.now()
		res, err := a.apply(ctx, *f)
		if err != nil {
			a.err = fmt.Errorf("storing %s of %s: %w", f.Outcome, a, err)
			return
		}
		a.receipt = res.Receipt
	})
	return first
}

// apply stores the end of the attempt. What is certainly not written is tried again while the lease lasts: the app
// has answered, and without this its answer would be lost over a disk that was full for a moment.
func (a *Attempt) apply(ctx context.Context, f Finish) (Result, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		res, err := a.gate.store.Apply(ctx, f)
		if err == nil || !errors.Is(err, ErrNotWritten) || !errors.Is(err, ErrUnavailable) ||
			!a.gate.now().Add(pause).Before(a.lease) {
			return res, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return res, err
		}
	}
}

// Pauses between two tries to store the end of an attempt.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Confirm stores an outcome, Commit or Reject, that came after the attempt was left: every attempt that is not closed
// may confirm. It returns the receipt that stands then, which may be another attempt's; see [Receipt.AnsweredBy].
func (a *Attempt) Confirm(ctx context.Context, outcome Outcome, answer Answer) (Receipt, error) {
	res, err := a.gate.store.Apply(ctx, Finish{
		Key: a.Identity.Key, Attempt: a.Number, Outcome: outcome, Answer: answer, Learned: LearnedResponse, At: a.gate.now(),
	})
	if err != nil {
		return Receipt{}, fmt.Errorf("storing %s of %s: %w", outcome, a, err)
	}
	return res.Receipt.clone(), nil
}
