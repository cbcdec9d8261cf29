package dedup

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

// State is where an event stands. The values are on disk: they never change their meaning.
type State uint8

// The states. Nothing makes Queued and Dead yet: they are the inbox's.
const (
	StateAbsent    State = iota // no receipt
	StateReserved               // an attempt may be running
	StateOpen                   // the next delivery is forwarded as a new attempt
	StateCommitted              // final, with the app's answer
	StateRejected               // final, with the app's refusal
	StateHeld                   // a person decides
	StateQueued                 // payload kept, due at a time
	StateDead                   // given up, kept for a person
	stateEnd
)

var stateNames = [stateEnd]string{"absent", "reserved", "open", "committed", "rejected", "held", "queued", "dead"}

// States is the number of states: what a table indexed by State needs.
const States = int(stateEnd)

// String is the state's name in logs, metrics and documentation.
func (s State) String() string {
	if s < stateEnd {
		return stateNames[s]
	}
	return "state " + strconv.Itoa(int(s))
}

// Final tells whether the state can never change (but by retention) and has a stored answer.
func (s State) Final() bool { return s == StateCommitted || s == StateRejected }

// Learned is how an outcome came to be known. The values are on disk.
type Learned uint8

// The ways to learn an outcome.
const (
	LearnedNothing  Learned = iota
	LearnedResponse         // the app's own HTTP answer
	LearnedCallback         // the app's confirmation
	LearnedOutcome          // the app's answer to the outcome question
	LearnedOperator         // a person
	LearnedPolicy           // a guess the operator has chosen
	learnedEnd
)

// String is the word for it in logs and documentation.
func (l Learned) String() string {
	if l < learnedEnd {
		return [learnedEnd]string{"", "response", "callback", "outcome", "operator", "policy"}[l]
	}
	return "learned " + strconv.Itoa(int(l))
}

// Field is one header field of a stored answer.
type Field struct{ Name, Value string }

// Answer is what the app answered, and what every repeat gets.
type Answer struct {
	Status      int
	Header      []Field // in the app's order; a name may occur more than once
	Body        []byte
	BodyDropped bool // the app's body was above max_receipt; nobody got it
}

// Equal tells whether two answers are the same for their receiver.
func (a Answer) Equal(b Answer) bool {
	return a.Status == b.Status && a.BodyDropped == b.BodyDropped &&
		bytes.Equal(a.Body, b.Body) && slices.Equal(a.Header, b.Header)
}

func (a Answer) clone() *Answer {
	a.Header = append([]Field(nil), a.Header...)
	a.Body = append([]byte(nil), a.Body...)
	return &a
}

// AttemptToken is what is kept of an attempt's token: enough to recognize it. Who has the store's seed, too, can make
// it: a store, and a copy of one, is as secret as the tokens of its undecided events.
type AttemptToken struct {
	Attempt uint64
	Hash    [16]byte // HashToken of the token
}

// MaxTokens is how many attempts' tokens a receipt remembers, the newest. An older attempt is known by its number, which
// its token names, as long as the store has the seed that it was made with.
const MaxTokens = 64

// Receipt is the durable record of an event. Times are UTC, in whole milliseconds.
type Receipt struct {
	Key
	Type          string
	State         State
	Digest        Digest         // SHA-256 of the first delivery's body
	Fingerprint   Digest         // what equality is judged by; = Digest for bytes
	Attempt       uint64         // newest attempt's fencing number: the larger of last + 1 and the clock in ms
	Attempts      uint32         // as people count: 1, 2, ...
	Decided       uint64         // number of the attempt whose outcome is stored; 0 while there is none
	Closed        uint64         // attempts up to this number can never confirm (T5)
	Tokens        []AttemptToken // of the newest attempts, closed ones too, at most MaxTokens, in their order
	Owner         [16]byte       // process that made the newest reservation
	Lease         time.Time      // end of the newest reservation's lease; zero once that attempt has ended
	FirstSeen     time.Time
	Updated       time.Time
	Answer        *Answer // final states only
	Learned       Learned // how the outcome was learned
	InDoubtBefore bool    // the end of an earlier attempt is unknown
	Upstream      string  // where the newest attempt went, as the configuration names it; "" where not recorded
	Restored      bool    // brought in by a store that is older than the event's last known state

	extra []byte // fields of a later version of the record, kept as they came
}

// Same tells whether two answers are the same receipt, however the app gave them: a callback can say a status, a
// content type and a body, and no other header. A body that was dropped is like any other.
func (a Answer) Same(b Answer) bool {
	return a.Status == b.Status && a.contentType() == b.contentType() &&
		(a.BodyDropped || b.BodyDropped || bytes.Equal(a.Body, b.Body))
}

func (a Answer) contentType() string {
	for _, f := range a.Header {
		if f.Name == "Content-Type" {
			return f.Value
		}
	}
	return ""
}

// AnsweredBy tells whether the stored answer is that of the attempt with this number.
func (r Receipt) AnsweredBy(attempt uint64) bool {
	return r.State.Final() && r.Decided == attempt
}

// MayConfirm tells whether the newest attempt can still come to an outcome: it was made and not closed for good.
func (r Receipt) MayConfirm() bool { return r.Attempt > r.Closed && !r.State.Final() }

// clone shares no memory with r.
func (r Receipt) clone() Receipt {
	r.Tokens = append([]AttemptToken(nil), r.Tokens...)
	r.extra = append([]byte(nil), r.extra...)
	if r.Answer != nil {
		r.Answer = r.Answer.clone()
	}
	return r
}

// stamp is a time as records keep it: what is read back equals what was written.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
