package model

import (
	"errors"
	"reflect"
	"time"

	"github.com/einlass/einlass/dedup"
)

// record is all of a receipt that the rules look at. apply proves that on every step it takes: it takes it twice, with
// the other fields empty and filled.
type record struct {
	state, attempt, closed, decided, lease, digest, answer, tokens uint8
}

// Leases.
const (
	noLease = iota
	leaseRuns
	leaseOver
)

func (r record) found() bool { return r.state != absent }
func (r record) final() bool { return dedup.State(r.state).Final() }

// mayConfirm is dedup.Receipt.MayConfirm.
func (r record) mayConfirm() bool { return r.attempt > r.closed && !r.final() }

// The world's clock is noon plus a millisecond for each attempt made. That a lease is over is told by its end.
var (
	noon  = time.UnixMilli(1_780_000_000_000).UTC()
	event = dedup.Key{Source: "shop", Event: "evt_1"}
	seed  = dedup.Seed{1, 2, 3}
	lease = time.Hour
)

func clock(issued uint8) time.Time { return noon.Add(time.Duration(issued) * time.Millisecond) }

// number is an attempt's real number, made by the clock.
func number(attempt uint8) uint64 {
	if attempt == 0 {
		return 0
	}
	return uint64(noon.UnixMilli()) + uint64(attempt) - 1
}

func attemptOf(n uint64) uint8 {
	if n == 0 {
		return 0
	}
	a := n - uint64(noon.UnixMilli()) + 1
	if a == 0 || a > maxAttempts {
		panic("an attempt number outside the model")
	}
	return uint8(a)
}

var hashes = func() (h [maxAttempts + 1][16]byte) {
	for a := range h {
		h[a] = dedup.HashToken(seed.Token(event, number(uint8(a))))
	}
	return h
}()

func answerOf(receipt uint8) dedup.Answer { return dedup.Answer{Status: 200, Body: []byte{receipt}} }

// receipt is the real thing.
func (r record) receipt() dedup.Receipt {
	real := dedup.Receipt{
		Key: event, State: dedup.State(r.state), Digest: dedup.Digest{r.digest}, Fingerprint: dedup.Digest{r.digest},
		Attempt: number(r.attempt), Closed: number(r.closed), Decided: number(r.decided),
	}
	for a := uint8(1); a <= maxAttempts; a++ {
		if r.tokens&bit(a) != 0 {
			real.Tokens = append(real.Tokens, dedup.AttemptToken{Attempt: number(a), Hash: hashes[a]})
		}
	}
	switch r.lease {
	case leaseRuns:
		real.Lease = noon.Add(lease)
	case leaseOver:
		real.Lease = noon.Add(-lease)
	}
	if r.answer != 0 {
		a := answerOf(r.answer)
		real.Answer = &a
	}
	return real
}

func recordOf(real dedup.Receipt, now time.Time) record {
	r := record{
		state: uint8(real.State), attempt: attemptOf(real.Attempt), closed: attemptOf(real.Closed),
		decided: attemptOf(real.Decided), digest: real.Digest[0],
	}
	for _, t := range real.Tokens {
		a := attemptOf(t.Attempt)
		if t.Hash != hashes[a] {
			panic("a token that is not its attempt's")
		}
		r.tokens |= bit(a)
	}
	switch {
	case real.Lease.IsZero():
	case now.Before(real.Lease):
		r.lease = leaseRuns
	default:
		r.lease = leaseOver
	}
	if real.Answer != nil {
		r.answer = real.Answer.Body[0]
	}
	return r
}

// filled has something in every field that the rules must not look at.
func filled(real dedup.Receipt) dedup.Receipt {
	real.Type, real.Attempts, real.Owner, real.Learned = "t", 17, [16]byte{9}, dedup.LearnedPolicy
	real.FirstSeen, real.Updated = noon.Add(-24*time.Hour), noon.Add(-time.Minute)
	real.InDoubtBefore, real.Restored, real.Upstream = true, true, "app:3000"
	return real
}

// move is a transition in few bytes.
type move struct {
	kind    moveKind
	attempt uint8
	outcome dedup.Outcome
	answer  uint8
	digest  uint8
	policy  dedup.InDoubtPolicy
	now     uint8 // attempts made so far
	byID    bool
}

type moveKind uint8

const (
	reserve moveKind = iota
	finish
	confirm
	unknown // Absent
	fence   // Absent, fenced
	extend
	hold
	moveKinds
)

func (mv move) transition() dedup.Transition {
	at, n := clock(mv.now), number(mv.attempt)
	switch mv.kind {
	case reserve:
		id := dedup.Identity{Key: event, Digest: dedup.Digest{mv.digest}, ByID: mv.byID}
		return dedup.Reserve{Identity: id, At: at, Lease: lease, InDoubt: mv.policy, Seed: seed}
	case finish:
		return dedup.Finish{Key: event, Attempt: n, Outcome: mv.outcome, Answer: answerOf(mv.answer), Learned: dedup.LearnedResponse, At: at}
	case confirm:
		return dedup.Confirm{Key: event, Token: hashes[mv.attempt], Outcome: mv.outcome, Answer: answerOf(mv.answer), Learned: dedup.LearnedCallback, At: at}
	case unknown, fence:
		return dedup.Absent{Key: event, Attempt: n, Fenced: mv.kind == fence, At: at}
	case extend:
		return dedup.Extend{Key: event, Attempt: n, Lease: lease, At: at}
	case hold:
		return dedup.Hold{Key: event, At: at}
	}
	panic("no such move")
}

// moved is what a move has led to.
type moved struct {
	next    record
	kind    dedup.Kind
	changed bool
	err     error
}

// taken names a move from a receipt.
type taken struct {
	from record
	move move
}

// apply takes a step of the store's, by the real rules. Where the store is to fail, its caller gets no result,
// whether the step was written or not.
func (m *model) apply(s *state, mv move) moved {
	mv.now = s.issued
	before, live := s.store, s.live
	res := m.take(before, mv)
	m.checkStep(mv, before, res.next)
	if m.failing != storeWorks {
		m.failed = true
		if m.failing == storeLoses {
			return moved{next: before, err: errStore}
		}
	}
	s.store = res.next
	switch {
	case res.kind == dedup.Forward:
		k := res.next.attempt
		s.issued, s.lasted, s.live = max(s.issued, k), s.lasted|bit(k), k
	case res.changed && mv.kind == extend:
		s.live = res.next.attempt
	case res.changed && (res.next.final() || before.state == reserved && res.next.state == open && mv.attempt == live):
		s.live = 0 // an attempt's lease is over with the attempt's own end, or with an outcome
	}
	if m.failing == storeHides {
		return moved{next: before, err: errStore}
	}
	return res
}

// How the store is to fail in the step under way.
const (
	storeWorks = iota
	storeLoses // it writes nothing, and says so
	storeHides // it writes, and nobody is told
)

var errStore = errors.New("503 store unavailable")

func (m *model) take(from record, mv move) moved {
	if mv.kind != reserve {
		mv.now = 0
	}
	key := taken{from, mv}
	if res, ok := m.taken[key]; ok {
		return res
	}
	res := m.real(from.receipt(), from.found(), mv)
	if again := m.real(filled(from.receipt()), from.found(), mv); !reflect.DeepEqual(stripped(res), stripped(again)) {
		panic("a rule looks at a field that the model leaves out")
	}
	m.taken[key] = res
	return res
}

func (m *model) real(cur dedup.Receipt, found bool, mv move) moved {
	next, write, out, err := m.step(mv.transition(), cur, found)
	res := moved{next: recordOf(cur, clock(mv.now)), kind: out.Kind, changed: write, err: err}
	if !found {
		res.next = record{}
	}
	if write {
		res.next = recordOf(next, clock(mv.now))
	}
	return res
}

// stripped has the kind of the error in the error's place.
func stripped(r moved) moved {
	for _, kind := range []error{dedup.ErrUnknownEvent, dedup.ErrUnknownAttempt, dedup.ErrAttemptClosed, dedup.ErrReceiptDiffers, dedup.ErrNotAllowed} {
		if errors.Is(r.err, kind) {
			r.err = kind
		}
	}
	return r
}
