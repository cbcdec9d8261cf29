package dedup

import (
	"context"
	"errors"
	"time"
)

// storeTime bounds the storing of an app's answer.
const storeTime = 10 * time.Second

// Asker puts the outcome question to the app: what became of this event?
type Asker interface {
	// Ask returns what the app says. An error means that nothing was learned, because the app could not be reached
	// (ErrUnreachable) or said something that is no answer: it moves nothing, and the question is put again later.
	// Ask ends when ctx does, and by itself within some seconds.
	Ask(ctx context.Context, q Question) (Reply, error)
}

// Question is the outcome question about one event, by its newest attempt.
type Question struct {
	Key   Key
	Count uint32 // of the attempt, as people count: 1, 2, ...
	Token string // the attempt's; empty if it was made by a store with another seed
}

// ReplyKind is what the app says of an event.
type ReplyKind uint8

// The replies.
const (
	ReplyCommitted ReplyKind = iota + 1 // done; Reply.Answer is the receipt
	ReplyRejected                       // refused for good; Reply.Answer is the receipt
	ReplyAbsent                         // it knows nothing of it, but may still commit the attempt
	ReplyFenced                         // it knows nothing of it, and durably refuses this attempt and all before it
	ReplyPending                        // it is still at work
	replyEnd
)

// String is the reply's name in logs.
func (k ReplyKind) String() string {
	if k < replyEnd {
		return [replyEnd]string{"none", "committed", "rejected", "unknown", "unknown and fenced", "pending"}[k]
	}
	return "no reply"
}

// Reply is an app's answer to the outcome question.
type Reply struct {
	Kind   ReplyKind
	Answer Answer // committed and rejected only
}

// transition is what the reply moves.
func (r Reply) transition(key Key, attempt uint64, lease time.Duration, at time.Time) (Transition, error) {
	switch r.Kind {
	case ReplyCommitted:
		return Finish{Key: key, Attempt: attempt, Outcome: Commit, Answer: r.Answer, Learned: LearnedOutcome, At: at}, nil
	case ReplyRejected:
		return Finish{Key: key, Attempt: attempt, Outcome: Reject, Answer: r.Answer, Learned: LearnedOutcome, At: at}, nil
	case ReplyAbsent, ReplyFenced:
		return Absent{Key: key, Attempt: attempt, Fenced: r.Kind == ReplyFenced, At: at}, nil
	case ReplyPending:
		return Extend{Key: key, Attempt: attempt, Lease: lease, At: at}, nil
	}
	return nil, errors.New("not an answer to the outcome question")
}

// question is the outcome question about the newest attempt of an event.
func (g *Gate) question(r Receipt) Question {
	q := Question{Key: r.Key, Count: r.Attempts, Token: g.store.Seed().Token(r.Key, r.Attempt)}
	if !r.hasToken(r.Attempt, q.Token) {
		q.Token = ""
	}
	return q
}

// Ask asks the app what became of an event whose newest attempt does not run here, stores what it says, and tells
// what the event is then, as LookUp does. Without a policy to ask, or with nothing to ask about, it only looks. Of
// several calls for one event one asks and the others wait for it; what was asked within the last second is not asked
// again. When ctx ends meanwhile, the event is still in doubt as far as is known.
func (g *Gate) Ask(ctx context.Context, id Identity, p Policy) (Verdict, error) {
	v, _, err := g.lookUp(ctx, id, p)
	if err != nil || p.InDoubt != Ask || v.Kind != InDoubt && !v.Accepted {
		return v, err
	}
	err = g.resolver.askNow(ctx, v.Receipt.Key, p)
	switch {
	case ctx.Err() != nil:
		return v, nil //nolint:nilerr // that is the sender's time, and nothing of the store
	case err != nil:
		return Verdict{}, err
	}
	v, _, err = g.lookUp(ctx, id, p)
	return v, err
}

// resolve moves an event whose newest attempt does not run here as its source's policy says. One that the app has
// accepted is left in peace until its lease is over, unless a delivery of it has come.
func (g *Gate) resolve(ctx context.Context, key Key, p Policy, delivery bool) (left remains) {
	r, found, err := g.store.Lookup(ctx, Identity{Key: key})
	switch {
	case err != nil:
		return remains{err: err}
	case !found, !r.MayConfirm(), r.State == StateHeld:
		return remains{nothing: true}
	}
	if f, accepted := g.flights.ofAccepted(key); f != nil && (!accepted || !delivery) {
		// The end of an attempt brings it back; a reservation under way may fail.
		return remains{nothing: f.attempting(), since: r.Updated}
	}
	now := g.now()
	if p.InDoubt == HoldForPerson {
		return g.hold(ctx, r, now)
	}
	if p.InDoubt != Ask || p.Asker == nil {
		return remains{nothing: true}
	}
	q := g.question(r)
	reply, err := p.Asker.Ask(ctx, q)
	if q.Token == "" && reply.Kind == ReplyFenced {
		reply.Kind = ReplyAbsent // the app cannot have refused an attempt that was not named to it
	}
	var t Transition
	if err == nil {
		t, err = reply.transition(key, r.Attempt, p.Lease, g.now())
	}
	if err != nil {
		if ctx.Err() != nil { // the sender has gone, or the gate closes: that says nothing of the app
			return remains{err: ctx.Err()}
		}
		if g.resolver.ctx.Err() == nil {
			g.notify(Notice{Kind: NoticeUnanswered, Key: key, Receipt: r, Err: err})
		}
		return remains{unreachable: errors.Is(err, ErrUnreachable), nonsense: true, since: r.Updated}
	}
	// What the app has said is stored, also if the delivery that caused the question has no time left.
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	res, err := g.apply(storing, t)
	if err != nil {
		g.alert(err, key, res.Receipt, r.Attempt)
		return remains{err: err}
	}
	g.flights.wake(res.Receipt) // of an attempt that was begun meanwhile
	g.compare(r.Attempt, t, res.Receipt)
	if res.Changed && reply.Kind != ReplyPending {
		g.notify(Notice{Kind: NoticeResolved, Key: key, Receipt: res.Receipt, Attempt: r.Attempt})
	}
	return remains{nothing: !res.Receipt.MayConfirm(), since: res.Receipt.Updated}
}

// hold sets an event aside for a person once its lease is over.
func (g *Gate) hold(ctx context.Context, r Receipt, now time.Time) remains {
	switch {
	case r.State != StateReserved:
		return remains{nothing: true}
	case now.Before(r.Lease):
		return remains{until: r.Lease}
	}
	res, err := g.apply(ctx, Hold{Key: r.Key, At: now})
	if err != nil {
		return remains{err: err}
	}
	if res.Changed {
		g.notify(Notice{Kind: NoticeHeld, Key: r.Key, Receipt: res.Receipt})
	}
	return remains{nothing: true}
}

// remains is what is left to do of an event after it was dealt with.
type remains struct {
	nothing     bool
	unreachable bool      // the app gave no answer at all
	nonsense    bool      // it gave none that is one
	until       time.Time // not before this
	since       time.Time // when the event last changed
	err         error     // of the store, or of the context: nothing was learned of the app
}
