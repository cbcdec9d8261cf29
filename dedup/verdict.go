package dedup

import (
	"strconv"
	"time"
)

// Kind is what a delivery meets.
type Kind uint8

// The kinds.
const (
	First    Kind = iota // nothing known: check the contract, then Reserve
	Again                // known and free (or in doubt and the lease over): Reserve; the contract was checked before
	Forward              // this delivery is the attempt: Verdict.Attempt is set
	Replay               // final: answer from Verdict.Receipt.Answer
	Conflict             // same id, other content; the stored receipt stands
	Running              // another delivery's attempt is running in this process: Wait
	InDoubt              // reserved, but its attempt does not run here, and the lease is not over: RetryAfter is set
	Held                 // a person decides
	Aborted              // from Wait: the attempt waited for has ended without a stored answer
	kindEnd
)

// String is the kind's name in tests and logs.
func (k Kind) String() string {
	if k < kindEnd {
		return [kindEnd]string{"first", "again", "forward", "replay", "conflict", "running", "in doubt", "held",
			"aborted"}[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Policy is what a source's configuration says about its attempts.
type Policy struct {
	Lease   time.Duration // how long an attempt may take before it counts as lost; positive
	InDoubt InDoubtPolicy
	Asker   Asker // Ask only: puts the outcome question to the source's app
}

// Verdict is what the gate says of a delivery.
type Verdict struct {
	Kind       Kind
	Receipt    Receipt       // as stored; zero for First
	Attempt    *Attempt      // Forward only; the caller ends it by exactly one of the methods that end it
	Accepted   bool          // Running only: nothing of the attempt runs here, the app is to say what became of it; see Gate.Ask
	RetryAfter time.Duration // InDoubt and Running: rest of the lease, 1 s to 60 s; 0 where that says nothing
}

// retryAfter is the rest of a lease within what senders can do something with.
func retryAfter(lease, now time.Time) time.Duration {
	return min(max(lease.Sub(now), time.Second), time.Minute)
}

// judge says what a receipt means for a delivery that has only looked: it moves nothing. Whether the attempt of
// a reserved receipt runs in this process is not the receipt's to tell.
func judge(r Receipt, found bool, id Identity, p Policy, now time.Time) Verdict {
	id = id.normal()
	v := Verdict{Receipt: r}
	switch {
	case !found:
		v.Kind = First
	case !id.sameContent(r.Digest, r.Fingerprint):
		v.Kind = Conflict
	case r.State.Final():
		v.Kind = Replay
	case r.State == StateOpen:
		v.Kind = Again
	case r.State == StateReserved && now.Before(r.Lease):
		v.Kind, v.RetryAfter = InDoubt, retryAfter(r.Lease, now)
	case r.State == StateReserved && p.InDoubt == Ask:
		v.Kind = InDoubt // whenever the app answers
	case r.State == StateReserved:
		v.Kind = Again // the writer decides between T7 and T8
	default: // held, and what only the inbox makes
		v.Kind = Held
	}
	return v
}
