package verifier

import (
	"net/http"
	"time"
)

// DefaultMaxBody is the body limit, in bytes, of a sender whose own is not known.
const DefaultMaxBody = 1 << 20

// Tri is a fact that may be unknown.
type Tri uint8

// The three values.
const (
	Unknown Tri = iota
	Yes
	No
)

// String gives "unknown", "yes" or "no".
func (t Tri) String() string {
	switch t {
	case Yes:
		return "yes"
	case No:
		return "no"
	default:
		return "unknown"
	}
}

// Facts is what is known about a sender, as data. What is not known stays zero:
// nothing here is a guess.
type Facts struct {
	// EventID is where the stable event id is, in the selector words of the
	// Caddyfile: "header X-GitHub-Delivery", "json /id". Of several header
	// names the first that is present counts.
	EventID string
	// EventType is where the event's type is, likewise; "" = nowhere.
	EventType string
	// IDSigned is whether the event id is covered by the signature.
	IDSigned Tri
	// Compare is what makes two deliveries of one id the same: "bytes", "json",
	// "json ignore /pointer" (a member that changes from retry to retry) or "id".
	Compare string
	// ReplayGuard: the same bytes under a new, unsigned id count as the same
	// event.
	ReplayGuard bool
	// MaxBody is the body limit in bytes: the sender's own, else DefaultMaxBody.
	MaxBody int64
	// Tolerance is the window of the signed time in each direction; 0 = the
	// scheme has no time.
	Tolerance time.Duration
	// Deadline is how long the sender waits for an answer; 0 = not known.
	Deadline time.Duration
	// Retries is whether the sender tries again by itself.
	Retries Tri
	// RetryHorizon is how long after the first try a repeat may still come;
	// 0 = not known.
	RetryHorizon time.Duration
	// RetryNote is one line for people: schedule, disabling, Retry-After, 410.
	RetryNote string
	// ContentTypes are the documented media types. They inform; they are no
	// reason to refuse.
	ContentTypes []string
	// Handshake is what the sender demands of an endpoint; nil = nothing known.
	Handshake *Handshake
	// Sample is a delivery to test with.
	Sample Sample
	// Sources says where each fact is from.
	Sources []string
}

// Sample is a delivery to test with, without its signature.
type Sample struct {
	// Type is the event type to put for {type}.
	Type string
	// Header are headers to send along; values may hold {id} and {type}.
	Header http.Header
	// Body may hold {id}, {type} and {n}, a number.
	Body string
}

// Handshake is a demand of a sender on an endpoint that the gate answers itself.
type Handshake struct {
	// Name is the sender's word for it.
	Name string
	// Methods are the methods it uses besides POST.
	Methods []string
	// Signed: the request is verified first, like an event.
	Signed bool
	// Answer gives the reply; false = the request is no handshake.
	Answer func(req Request, body []byte) (Reply, bool)
}

// Reply is the answer to a handshake.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}
