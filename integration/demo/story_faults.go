package demo

import (
	"context"
	"fmt"

	"github.com/einlass/einlass/integration/demo/counter"
)

// tellFaults: the app fails, the answer is lost, the sender is gone. Nothing is lost and nothing happens twice.
func tellFaults(ctx context.Context, l *lab) error {
	if err := l.tellFailure(ctx, l.newEvent(13)); err != nil {
		return err
	}
	if err := l.tellLostAnswer(ctx, l.newEvent(17)); err != nil {
		return err
	}
	return l.tellHangUp(ctx, l.newEvent(19))
}

// deliverInto begins a scene with one delivery into an app that is armed with a fault.
func (l *lab) deliverInto(ctx context.Context, name string, e *event, fault string) (*scene, answer, error) {
	s, err := l.begin(ctx, name, e.String())
	if err != nil {
		return nil, answer{}, err
	}
	if err := l.app.arm(ctx, counter.Fault{EventID: e.id, Fault: fault}); err != nil {
		return nil, answer{}, err
	}
	got, err := l.deliver(ctx, e)
	return s, got, err
}

// tellFailure lets the app fail before its commit.
func (l *lab) tellFailure(ctx context.Context, e *event) error {
	s, got, err := l.deliverInto(ctx, "the app fails before its commit", e, counter.FailBeforeCommit)
	if err != nil {
		return err
	}
	s.answered(got, 500, "")
	s.check("it asks for another try", got.retryAfter() > 0, got)
	if err := s.effect(ctx, 0, 1); err != nil {
		return err
	}
	if err := l.tellFirst(ctx, "the sender tries again after the failure", e); err != nil {
		return err
	}
	return l.tellRepeat(ctx, "repeat, after the failure", e)
}

// tellLostAnswer lets the app commit and then cut the connection.
func (l *lab) tellLostAnswer(ctx context.Context, e *event) error {
	s, got, err := l.deliverInto(ctx, "the app commits, its answer is lost", e, counter.DropAfterCommit)
	if err != nil {
		return err
	}
	s.Answer = got.String()
	checkEqual(s.Step, "the answer is 503", got.status, 503)
	s.check("it asks for another try", got.retryAfter() > 0, got)
	s.check("it is a problem with a code", got.code() != "", got)
	if err := s.effect(ctx, e.value, 1); err != nil {
		return err
	}
	if err := s.row(ctx, e); err != nil {
		return err
	}
	// The one thing that the gate cannot know: its policy is to forward again, and the app's row answers.
	return l.tellPatience(ctx, "the sender tries again after the loss", e, 1)
}

// tellPatience lets the sender retry an event whose effect has happened but whose answer nobody saw. calls is
// how many more requests reach the app.
func (l *lab) tellPatience(ctx context.Context, name string, e *event, calls int64) error {
	s, err := l.begin(ctx, name, e.String())
	if err != nil {
		return err
	}
	outcome, _, err := l.ledger.Outcome(ctx, e.id)
	if err != nil {
		return err
	}
	answers, err := l.retry(ctx, e)
	if err != nil {
		return err
	}
	last := answers[len(answers)-1]
	s.answered(last, 200, "")
	s.Sent = fmt.Sprintf("%s, %s", e, times(int64(len(answers))))
	refused := 0
	for _, got := range answers[:len(answers)-1] {
		if got.status == 503 && got.retryAfter() > 0 {
			refused++
		}
	}
	checkEqual(s.Step, "until then every answer was a 503 with Retry-After", refused, len(answers)-1)
	checkEqual(s.Step, "it gives the counter as it was after the effect", last.total(), outcome.Total)
	e.original = last
	if err := s.effect(ctx, 0, calls); err != nil {
		return err
	}
	return l.tellRepeat(ctx, name+", once more", e)
}

const hangUpMS = 400

// tellHangUp lets the sender hang up while the app works.
func (l *lab) tellHangUp(ctx context.Context, e *event) error {
	s, err := l.begin(ctx, "the sender hangs up while the app works", e.String())
	if err != nil {
		return err
	}
	if _, err := l.interrupt(ctx, e, hangUpMS, func(hangUp context.CancelFunc) error {
		hangUp()
		return nil
	}); err != nil {
		return err
	}
	s.Answer = "nobody is there"
	if err := l.effected(ctx, e); err != nil {
		return err
	}
	if err := s.effect(ctx, e.value, 1); err != nil {
		return err
	}
	if err := s.row(ctx, e); err != nil {
		return err
	}
	return l.tellReceipt(ctx, "the sender tries again after hanging up", e)
}

// tellReceipt delivers an event whose answer is stored though no sender has seen it.
func (l *lab) tellReceipt(ctx context.Context, name string, e *event) error {
	s, err := l.begin(ctx, name, e.String())
	if err != nil {
		return err
	}
	outcome, _, err := l.ledger.Outcome(ctx, e.id)
	if err != nil {
		return err
	}
	got, err := l.deliver(ctx, e)
	if err != nil {
		return err
	}
	e.original = got
	s.repeated(e, got)
	checkEqual(s.Step, "it gives the counter as it was after the effect", got.total(), outcome.Total)
	return s.effect(ctx, 0, 0)
}

// interrupt sends the event to an app that takes slowMS and calls disturb as soon as the app works. It gives
// what the sender saw.
func (l *lab) interrupt(ctx context.Context, e *event, slowMS int64, disturb func(hangUp context.CancelFunc) error) (answer, error) {
	if err := l.app.arm(ctx, counter.Fault{EventID: e.id, Fault: counter.Slow, SlowMS: slowMS}); err != nil {
		return answer{}, err
	}
	d, err := l.sender.newDelivery(e.body)
	if err != nil {
		return answer{}, err
	}
	connection, hangUp := context.WithCancel(ctx)
	defer hangUp()
	seen := make(chan answer, 1)
	go func() { seen <- l.sender.send(connection, l.gate.url(), d) }()
	err = l.working(ctx)
	if err == nil {
		err = disturb(hangUp)
	}
	if err != nil {
		hangUp()
	}
	return <-seen, err
}
