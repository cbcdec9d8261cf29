package deduptest

import (
	"crypto/sha256"
	"time"

	"github.com/einlass/einlass/dedup"
)

// Start is when the suites' time begins.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Lease is what the suites reserve for.
const Lease = time.Minute

// Event is the identity of a delivery with this id and body.
func Event(id, body string) dedup.Identity {
	digest := dedup.Digest(sha256.Sum256([]byte(body)))
	return dedup.Identity{
		Key:  dedup.Key{Source: "shop", Event: id},
		Type: "order.created", Digest: digest, Fingerprint: digest,
	}
}

// Guarded is Event for a source with a replay guard.
func Guarded(id, body string) dedup.Identity {
	e := Event(id, body)
	e.Guard = true
	return e
}

// Reserve is a reservation of the event, some time after Start.
func Reserve(id dedup.Identity, after time.Duration, policy dedup.InDoubtPolicy) dedup.Reserve {
	return dedup.Reserve{
		Identity: id, At: Start.Add(after), Lease: Lease, InDoubt: policy,
		Owner: [16]byte{1}, Seed: dedup.Seed{1},
	}
}

// Finish is the end of an attempt. Its answer tells the attempt.
func Finish(key dedup.Key, attempt uint64, outcome dedup.Outcome, after time.Duration) dedup.Finish {
	f := dedup.Finish{Key: key, Attempt: attempt, Outcome: outcome, At: Start.Add(after)}
	if outcome != dedup.Abort {
		f.Answer, f.Learned = Answer(attempt), dedup.LearnedResponse
	}
	return f
}

// Confirm is the app's word on one of the attempts of r, by the token's hash that r holds. Its answer tells the attempt.
func Confirm(r dedup.Receipt, attempt uint64, outcome dedup.Outcome, after time.Duration) dedup.Confirm {
	c := dedup.Confirm{Key: r.Key, Outcome: outcome, Learned: dedup.LearnedCallback, At: Start.Add(after)}
	for _, token := range r.Tokens {
		if token.Attempt == attempt {
			c.Token = token.Hash
		}
	}
	if outcome != dedup.Abort {
		c.Answer = Answer(attempt)
	}
	return c
}

// Absent is the app's answer that it knows nothing of an attempt.
func Absent(key dedup.Key, attempt uint64, fenced bool, after time.Duration) dedup.Absent {
	return dedup.Absent{Key: key, Attempt: attempt, Fenced: fenced, At: Start.Add(after)}
}

// Extend is the app's answer that it is still at an attempt.
func Extend(key dedup.Key, attempt uint64, after time.Duration) dedup.Extend {
	return dedup.Extend{Key: key, Attempt: attempt, Lease: Lease, At: Start.Add(after)}
}

// Answer is an answer that tells the attempt it is of.
func Answer(attempt uint64) dedup.Answer {
	return dedup.Answer{
		Status: 201,
		Header: []dedup.Field{{Name: "Content-Type", Value: "text/plain"}, {Name: "X-Empty"}},
		Body:   []byte(time.UnixMilli(int64(attempt)).UTC().String()),
	}
}
