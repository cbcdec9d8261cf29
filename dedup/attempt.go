package dedup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Attempt is one forwarding of an event to the app, reserved durably. Its owner ends it by exactly one of Commit,
// Reject, Abort, Leave, Accept, Pending and Settle. Further calls, from any goroutine, wait for the first and change nothing.
type Attempt struct {
	Number   uint64   // fences: grows with every attempt of the event
	Count    uint32   // as people count: 1, 2, ...
	Token    string   // 48 hex digits, a secret of gate and app; see [Seed.Token]
	InDoubt  bool     // the end of an earlier attempt is unknown
	Identity Identity // of the event: with Guard, the key and type under which its content first came

	gate   *Gate
	flight *flight
	lease  time.Time

	once    sync.Once
	receipt Receipt // what the end has led to
	err     error
}

func newAttempt(g *Gate, f *flight, id Identity, r Receipt) *Attempt {
	id = id.normal()
	id.Key, id.Type = r.Key, r.Type
	return &Attempt{
		Number: r.Attempt, Count: r.Attempts, Token: g.store.Seed().Token(r.Key, r.Attempt), InDoubt: r.InDoubtBefore, Identity: id,
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
	if a.end(ctx, a.finish(Abort, Answer{}, LearnedNothing)) {
		return a.err
	}
	return nil
}

// Receipt is what the end of the attempt has led to, once it has ended; zero after Leave, Accept and Pending.
func (a *Attempt) Receipt() Receipt { return a.receipt.clone() }

// Leave ends the attempt without an outcome: its end is unknown. Nothing moves; reservation and lease stand, and
// whoever waits for it is told that the event is in doubt.
func (a *Attempt) Leave() {
	a.end(context.Background(), nil)
}

// Accept ends the attempt for its owner: the app has the event, goes on without an open connection and will confirm it
// (Gate.Confirm). The reservation stands until the lease's end. Until then whoever waits for the event goes on waiting,
// and only a delivery of it asks the app (Gate.Ask); after that it is in doubt.
func (a *Attempt) Accept() {
	a.once.Do(func() { a.accept(a.lease) })
}

// Pending is Accept with a new lease from now on, durably: the app says that it is still at work. If the lease cannot
// be stored, the old one counts.
func (a *Attempt) Pending(ctx context.Context, lease time.Duration) (err error) {
	a.once.Do(func() {
		var res Result
		end := a.lease
		res, err = a.apply(ctx, Extend{Key: a.Identity.Key, Attempt: a.Number, Lease: lease, At: a.gate.now()})
		if err == nil && res.Receipt.Lease.After(end) {
			end = res.Receipt.Lease
		}
		a.accept(end)
	})
	return err
}

func (a *Attempt) accept(until time.Time) {
	a.gate.flights.accept(a.flight, until.Sub(a.gate.now()), func() {
		a.gate.resolver.track(a.Identity.Key, a.gate.now())
	})
}

// Ask puts the outcome question about this attempt, which is still its owner's to end.
func (a *Attempt) Ask(ctx context.Context, asker Asker) (Reply, error) {
	return asker.Ask(ctx, Question{Key: a.Identity.Key, Count: a.Count, Token: a.Token})
}

// Settle ends the attempt with the app's answer to the outcome question and returns what stands then, durably:
// committed or rejected; open, after which the event's next delivery is forwarded; or reserved, with a new lease, if
// the app is still at work. After an error the attempt is left in doubt.
func (a *Attempt) Settle(ctx context.Context, r Reply, lease time.Duration) (Receipt, error) {
	if r.Kind == ReplyPending {
		err := a.Pending(ctx, lease)
		return Receipt{State: StateReserved}, err
	}
	t, err := r.transition(a.Identity.Key, a.Number, lease, a.gate.now())
	if err != nil {
		a.Leave()
		return Receipt{}, err
	}
	if r.Kind == ReplyAbsent {
		t = a.finish(Abort, Answer{}, LearnedNothing) // it has ended, and the app knows nothing of it: no doubt is left
	}
	if !a.end(ctx, t) {
		return Receipt{}, ErrEnded
	}
	return a.receipt.clone(), a.err
}

// Confirmed is closed once the event was decided in another way than by the attempt's owner: by a callback. Stands
// tells what it is then.
func (a *Attempt) Confirmed() <-chan struct{} { return a.flight.confirmed }

// Stands is the event's receipt as it is stored now.
func (a *Attempt) Stands(ctx context.Context) (Receipt, error) {
	r, found, err := a.gate.store.Lookup(ctx, Identity{Key: a.Identity.Key})
	if err == nil && !found {
		err = ErrUnknownEvent
	}
	return r, err
}

func (a *Attempt) final(ctx context.Context, outcome Outcome, answer Answer) (Receipt, error) {
	first := a.end(ctx, a.finish(outcome, answer, LearnedResponse))
	if !first && a.err == nil && !a.receipt.State.Final() {
		return Receipt{}, ErrEnded
	}
	return a.receipt.clone(), a.err
}

func (a *Attempt) finish(o Outcome, answer Answer, how Learned) Finish {
	return Finish{Key: a.Identity.Key, Attempt: a.Number, Outcome: o, Answer: answer, Learned: how, At: a.gate.now()}
}

// end runs the first end of the attempt and tells whether this call was it. Without a transition, nothing moves.
func (a *Attempt) end(ctx context.Context, t Transition) (first bool) {
	a.once.Do(func() {
		first = true
		defer a.ended() // looks for itself whether something is left to ask
		defer func() {  // after the outcome is durable
			a.gate.flights.end(a.flight)
			if a.receipt.State.Final() {
				a.gate.flights.wake(a.receipt) // of a later attempt, if a callback had freed the event
			}
		}()
		if t == nil {
			return
		}
		res, err := a.apply(ctx, t)
		if err != nil {
			a.gate.alert(err, a.Identity.Key, res.Receipt, a.Number)
			a.err = fmt.Errorf("storing the end of %s: %w", a, err)
			return
		}
		a.receipt = res.Receipt
		a.gate.compare(a.Number, t, res.Receipt)
	})
	return first
}

// ended brings in what is in doubt now, or open and not closed. Who has decided the event in another way has done so
// already.
func (a *Attempt) ended() {
	select {
	case <-a.flight.confirmed:
		return
	default:
	}
	switch {
	case a.receipt.State.Final():
	case a.receipt.State == StateOpen:
		a.gate.resolver.track(a.Identity.Key, a.gate.now().Add(firstGap))
	default:
		a.gate.resolver.track(a.Identity.Key, a.lease)
	}
}

// Compare tells of an outcome of this attempt that came after another attempt's receipt, if the two differ.
func (a *Attempt) Compare(o Outcome, answer Answer, stands Receipt) {
	a.gate.compare(a.Number, a.finish(o, answer, LearnedResponse), stands)
}

// compare tells of an outcome that another attempt's receipt stands in the way of: two receipts prove two effects, and
// so does another receipt of an attempt that the app had refused for good. The same receipt is the row that it found.
func (g *Gate) compare(attempt uint64, t Transition, stands Receipt) {
	f, ok := t.(Finish)
	if !ok || f.Outcome == Abort || stands.Answer == nil || stands.AnsweredBy(attempt) {
		return
	}
	switch same := (f.Outcome == Commit) == (stands.State == StateCommitted) && stands.Answer.Same(f.Answer); {
	case same:
	case attempt > stands.Closed:
		g.alert(ErrReceiptDiffers, stands.Key, stands, attempt)
	case f.Outcome == Commit:
		g.alert(ErrAttemptClosed, stands.Key, stands, attempt)
	}
}

// apply stores the end of the attempt. What is certainly not written is tried again while the lease lasts: the app
// has answered, and without this its answer would be lost over a disk that was full for a moment.
func (a *Attempt) apply(ctx context.Context, t Transition) (Result, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		res, err := a.gate.apply(ctx, t)
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
	f := a.finish(outcome, answer, LearnedResponse)
	res, err := a.gate.apply(ctx, f)
	if err != nil {
		a.gate.alert(err, a.Identity.Key, res.Receipt, a.Number)
		return Receipt{}, fmt.Errorf("storing %s of %s: %w", outcome, a, err)
	}
	if res.Changed {
		a.gate.flights.wake(res.Receipt)
	}
	a.gate.compare(a.Number, f, res.Receipt)
	return res.Receipt.clone(), nil
}
