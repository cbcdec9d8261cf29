package dedup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// GateOptions are what a test replaces; the zero value is right for everyone else.
type GateOptions struct {
	Now  func() time.Time // default: time.Now
	Rand io.Reader        // where tokens come from; default: crypto/rand
}

// Gate is the protocol above a store. There is one for each open store, shared by all sources and kept across
// config reloads: what runs in this process is known to it alone.
type Gate struct {
	store   Store
	now     func() time.Time
	rand    io.Reader
	owner   [16]byte
	flights *flights
}

// NewGate makes the gate of an open store. From now on the store is the gate's: nobody else may apply transitions.
func NewGate(store Store, opts GateOptions) *Gate {
	g := &Gate{store: store, now: opts.Now, rand: opts.Rand, flights: newFlights()}
	if g.now == nil {
		g.now = time.Now
	}
	if g.rand == nil {
		g.rand = rand.Reader
	}
	rand.Read(g.owner[:]) // never fails, says its documentation
	return g
}

// LookUp tells what a delivery meets, without moving anything and without waiting for other events' writes. Its
// answer may be stale when it arrives: First and Again are only a permission to Reserve, which looks again.
// It never returns Forward or Aborted. An error means that nothing is known: answer 503.
func (g *Gate) LookUp(ctx context.Context, id Identity, _ Policy) (Verdict, error) {
	v, _, err := g.lookUp(ctx, id)
	return v, err
}

// lookUp also returns the flight to wait for, if the verdict is Running.
func (g *Gate) lookUp(ctx context.Context, id Identity) (Verdict, *flight, error) {
	for seen := uint64(0); ; {
		r, found, err := g.store.Lookup(ctx, id)
		if err != nil {
			return Verdict{}, nil, err
		}
		now := g.now()
		v := judge(r, found, id, now)
		if r.State != StateReserved || v.Kind == Conflict {
			return v, nil, nil
		}
		if f := g.flights.of(r.Key); f != nil {
			v.Kind, v.RetryAfter = Running, retryAfter(r.Lease, now)
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
// for First and Again. After an error the event may be reserved; it is in doubt then until its lease is over.
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
		}
	}
	token, err := g.newToken()
	if err != nil {
		return Verdict{}, nil, NotWritten(err)
	}
	now := g.now()
	res, err := g.store.Apply(ctx, Reserve{
		Identity: id, At: now, Lease: p.Lease, InDoubt: p.InDoubt, Owner: g.owner, TokenHash: HashToken(token),
	})
	if err != nil {
		return Verdict{}, nil, err
	}
	v = Verdict{Kind: res.Kind, Receipt: res.Receipt}
	switch v.Kind {
	case Forward:
		own.start(res.Receipt.clone())
		v.Attempt = newAttempt(g, own, id, token, res.Receipt)
	case InDoubt:
		v.RetryAfter = retryAfter(res.Receipt.Lease, now)
	}
	return v, nil, nil
}

func (g *Gate) newToken() (string, error) {
	var raw [16]byte
	if _, err := io.ReadFull(g.rand, raw[:]); err != nil {
		return "", fmt.Errorf("making an attempt's token: %w", err)
	}
	return hex.EncodeToString(raw[:]), nil
}

// Wait waits until no attempt of the event runs in this process and tells what the event is then: Replay,
// Conflict, InDoubt, Held, or Aborted if the event is free again (the sender is to come back: it is not this
// delivery's turn). When ctx ends first, its error is returned.
func (g *Gate) Wait(ctx context.Context, id Identity, _ Policy) (Verdict, error) {
	for {
		v, f, err := g.lookUp(ctx, id)
		switch {
		case err != nil:
			return Verdict{}, err
		case f != nil:
			if err := await(ctx, f.done); err != nil {
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

// Running is the number of attempts that run in this process, those being reserved included.
func (g *Gate) Running() int { return g.flights.len() }

// Drain waits until no attempt runs in this process, or until ctx ends and returns its error. It keeps no new one
// from starting.
func (g *Gate) Drain(ctx context.Context) error { return g.flights.drain(ctx) }

// Stats are the store's.
func (g *Gate) Stats() Stats { return g.store.Stats() }

// Close closes the store. An attempt that still runs can no longer be finished and is in doubt afterwards.
func (g *Gate) Close() error { return g.store.Close() }
