package dedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/einlass/einlass/dedup/failpoint"
)

// GateOptions are settings of a gate. The zero value is good.
type GateOptions struct {
	Now    func() time.Time // default: time.Now
	Notify func(Notice)     // is told what an operator should hear of; it must not block or call the gate
}

// Gate is the protocol above a store. There is one for each open store, shared by all sources and kept across
// config reloads: what runs in this process is known to it alone.
type Gate struct {
	store    Store
	options  GateOptions
	now      func() time.Time
	owner    [16]byte
	flights  *flights
	resolver *resolver
}

// NewGate makes the gate of an open store. From now on the store is the gate's: nobody else may apply transitions.
// Close the gate when it is not needed any more.
func NewGate(store Store, opts GateOptions) *Gate {
	g := &Gate{store: store, options: opts, now: opts.Now, flights: newFlights()}
	if g.now == nil {
		g.now = time.Now
	}
	_, _ = rand.Read(g.owner[:]) // never fails, says its documentation
	g.resolver = newResolver(g)
	return g
}

// LookUp tells what a delivery meets, without moving anything and without waiting for other events' writes. Its
// answer may be stale when it arrives: First and Again are only a permission to Reserve, which looks again.
// It never returns Forward or Aborted. An error means that nothing is known: answer 503.
func (g *Gate) LookUp(ctx context.Context, id Identity, p Policy) (Verdict, error) {
	v, _, err := g.lookUp(ctx, id, p)
	return v, err
}

// lookUp also returns the flight to wait for, if the verdict is Running.
func (g *Gate) lookUp(ctx context.Context, id Identity, p Policy) (Verdict, *flight, error) {
	for seen := uint64(0); ; {
		r, found, err := g.store.Lookup(ctx, id)
		if err != nil {
			return Verdict{}, nil, err
		}
		now := g.now()
		v := judge(r, found, id, p, now)
		if r.State != StateReserved || v.Kind == Conflict {
			return v, nil, nil
		}
		if f, accepted := g.flights.ofAccepted(r.Key); f != nil {
			v.Kind, v.Accepted, v.RetryAfter = Running, accepted, retryAfter(r.Lease, now)
			return v, f, nil
		}
		// No flight: either it is in doubt, or its flight ended after the read. A flight ends after its outcome
		// is durable, so a second read of the same attempt settles it.
		if r.Attempt == seen {
			return v, nil, nil
		}
		seen = r.Attempt
	}
}

// Reserve makes the delivery the event's attempt, if it can be: the reservation is on disk when it returns
// Forward. Of any number of concurrent calls for one event exactly one gets Forward. Reserve waits for the
// store, but never for another attempt: it returns Running instead. It may also return what LookUp returns, but
// for First and Again. After an error the event may be reserved; it is in doubt then.
func (g *Gate) Reserve(ctx context.Context, id Identity, p Policy) (Verdict, error) {
	if id.Source == "" || id.Event == "" {
		return Verdict{}, NotWritten(errors.New("a delivery without source or event id cannot be reserved"))
	}
	if p.Lease <= 0 {
		return Verdict{}, NotWritten(fmt.Errorf("a lease must be positive, not %v", p.Lease))
	}
	for {
		own, other := g.flights.begin(id)
		if own != nil {
			var v Verdict
			var err error
			if v, other, err = g.reserve(ctx, own, id, p); other == nil {
				return v, err
			}
		}
		// What another delivery is about to reserve decides nothing yet: it may itself be refused, as a conflict say.
		if err := await(ctx, other.decided); err != nil {
			return Verdict{}, NotWritten(err)
		}
		if other.running && !other.over() {
			return g.meets(other, id), nil
		}
	}
}

// meets is the verdict on a delivery whose event has a running attempt.
func (g *Gate) meets(other *flight, id Identity) Verdict {
	v := Verdict{Kind: Running, Receipt: other.receipt.clone()}
	if !id.normal().sameContent(v.Receipt.Digest, v.Receipt.Fingerprint) {
		v.Kind = Conflict
		return v
	}
	v.RetryAfter = retryAfter(v.Receipt.Lease, g.now())
	return v
}

// reserve submits the reservation of a registered flight. Unless it returns Forward, the flight is over.
func (g *Gate) reserve(ctx context.Context, own *flight, id Identity, p Policy) (v Verdict, other *flight, err error) {
	defer func() {
		if v.Kind != Forward {
			g.flights.end(own)
		}
	}()
	key := id.Key
	if id.Guard {
		// This may be another, known event. While this flight holds its content's place nobody in this process can
		// change which one, so registering under that one too leaves no gap.
		r, found, err := g.store.Lookup(ctx, id)
		if err != nil {
			return Verdict{}, nil, NotWritten(err)
		}
		if found && r.Key != id.Key {
			if other := g.flights.join(own, r.Key); other != nil {
				return Verdict{}, other, nil
			}
			key = r.Key
		}
	}
	now := g.now()
	res, err := g.apply(ctx, Reserve{
		Identity: id, At: now, Lease: p.Lease, InDoubt: p.InDoubt, Owner: g.owner, Seed: g.store.Seed(),
	})
	if err != nil {
		if !errors.Is(err, ErrNotWritten) { // it may be reserved all the same
			g.resolver.track(key, now.Add(p.Lease))
		}
		return Verdict{}, nil, err
	}
	v = Verdict{Kind: res.Kind, Receipt: res.Receipt}
	switch v.Kind {
	case Forward:
		own.start(res.Receipt.clone())
		v.Attempt = newAttempt(g, own, id, res.Receipt)
	case InDoubt:
		v.RetryAfter = retryAfter(res.Receipt.Lease, now)
	case Held:
		if res.Changed {
			g.notify(Notice{Kind: NoticeHeld, Key: res.Receipt.Key, Receipt: res.Receipt})
		}
	}
	return v, nil, nil
}

// apply takes one step of the store's.
func (g *Gate) apply(ctx context.Context, t Transition) (Result, error) {
	if !failpoint.Enabled {
		return g.store.Apply(ctx, t)
	}
	before, after := points(t)
	failpoint.Hit(before)
	res, err := g.store.Apply(ctx, t)
	if err == nil {
		failpoint.Hit(after)
	}
	return res, err
}

// Wait waits until no attempt of the event runs in this process, or until the event was decided in another way (a
// callback), and tells what the event is then: Replay, Conflict, InDoubt, Held, or Aborted if the event is free again (the sender is to come back: it is not this
// delivery's turn). When ctx ends first, its error is returned.
func (g *Gate) Wait(ctx context.Context, id Identity, p Policy) (Verdict, error) {
	for {
		v, f, err := g.lookUp(ctx, id, p)
		switch {
		case err != nil:
			return Verdict{}, err
		case f != nil:
			if err := await(ctx, f.settled); err != nil {
				return Verdict{}, err
			}
		case v.Kind == First || v.Kind == Again:
			v.Kind = Aborted
			return v, nil
		default:
			return v, nil
		}
	}
}

// Knows tells whether an attempt of the event has this token, closed ones included. It moves nothing.
func (g *Gate) Knows(ctx context.Context, key Key, token string) (bool, error) {
	r, found, err := g.store.Lookup(ctx, Identity{Key: key})
	if err != nil || !found {
		return false, err
	}
	_, known := r.attemptOf(HashToken(token), g.store.Seed().attemptOf(key, token))
	return known, nil
}

// Confirm stores what the app says of one of its attempts, which it names by its token, and wakes whoever waits for
// the event. Errors are those of [Confirm], and the store's.
func (g *Gate) Confirm(ctx context.Context, key Key, token string, outcome Outcome, answer Answer) (Receipt, error) {
	made := g.store.Seed().attemptOf(key, token)
	res, err := g.apply(ctx, Confirm{
		Key: key, Token: HashToken(token), Made: made, Outcome: outcome, Answer: answer, Learned: LearnedCallback, At: g.now(),
	})
	if err != nil {
		attempt, _ := res.Receipt.attemptOf(HashToken(token), made)
		if outcome != Reject || !errors.Is(err, ErrAttemptClosed) { // a refusal is no effect
			g.alert(err, key, res.Receipt, attempt)
		}
		return Receipt{}, err
	}
	if res.Changed {
		g.flights.wake(res.Receipt)
	}
	if res.Kind == Again { // aborted; it may have been said carelessly
		g.resolver.track(key, g.now().Add(firstGap))
	}
	return res.Receipt.clone(), nil
}

// alert tells of a confirmation that was refused, if it was for a reason that somebody should hear of.
func (g *Gate) alert(err error, key Key, stands Receipt, attempt uint64) {
	switch {
	case errors.Is(err, ErrReceiptDiffers):
		g.notify(Notice{Kind: NoticeReceiptDiffers, Key: key, Receipt: stands, Attempt: attempt, Err: err})
	case errors.Is(err, ErrAttemptClosed):
		g.notify(Notice{Kind: NoticeAttemptClosed, Key: key, Receipt: stands, Attempt: attempt, Err: err})
	}
}

// Running is the number of attempts that run in this process, those being reserved included and those left out that
// were accepted (Attempt.Accept).
func (g *Gate) Running() int { return g.flights.len() }

// Drain waits until no attempt runs in this process, or until ctx ends and returns its error. It keeps no new one
// from starting.
func (g *Gate) Drain(ctx context.Context) error { return g.flights.drain(ctx) }

// Stats are the store's.
func (g *Gate) Stats() Stats { return g.store.Stats() }

// Close stops asking and closes the store. An attempt that still runs can no longer be finished and is in doubt
// afterwards.
func (g *Gate) Close() error {
	g.resolver.stop()
	g.flights.close()
	return g.store.Close()
}
