package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/einlass/einlass/integration/demo/counter"
)

// secret is the sender's, fixed for the run. It protects nothing.
const secret = "7f1d3a5c9be2046881c7de20f4a96b3d5e0892cb71fa4d36e8057b9c1d2a6f43"

// lab is everything that takes part in the story.
type lab struct {
	app      *app
	gate     *gate
	sender   *sender
	ledger   *counter.Ledger
	report   *Report
	progress func(step string)
	events   int
}

// newLab starts the app and the gate on files in dir. appCommand is the command line that runs the app.
func newLab(ctx context.Context, gateExe string, appCommand []string, dir string) (*lab, error) {
	l := &lab{report: &Report{}, progress: func(string) {}}
	if err := l.open(ctx, gateExe, appCommand, dir); err != nil {
		return nil, errors.Join(err, l.close()) // what was started before it failed
	}
	return l, nil
}

func (l *lab) open(ctx context.Context, gateExe string, appCommand []string, dir string) (err error) {
	if l.sender, err = newSender(secret); err != nil {
		return err
	}
	if l.app, err = startApp(ctx, appCommand, dir); err != nil {
		return err
	}
	if l.ledger, err = counter.OpenLedger(ctx, counterFile(dir)); err != nil {
		return err
	}
	if l.gate, err = newGate(gateExe, dir, l.app.ready.Webhook, secret); err != nil {
		return err
	}
	return l.gate.start(ctx)
}

// close stops what was started. It does not depend on any context: it must happen after Ctrl-C too.
func (l *lab) close() error {
	var errs []error
	if l.gate != nil {
		errs = append(errs, l.gate.stop())
	}
	if l.ledger != nil {
		errs = append(errs, l.ledger.Close())
	}
	if l.app != nil {
		errs = append(errs, l.app.stop())
	}
	return errors.Join(errs...)
}

// event is one event of the sender's, and what it was answered when it was first processed.
type event struct {
	id       string
	value    int64
	body     []byte
	original answer
}

// newEvent makes an event that was never sent.
func (l *lab) newEvent(value int64) *event {
	l.events++
	e := &event{id: fmt.Sprintf("evt-demo-%02d", l.events), value: value}
	e.body = e.withValue(strconv.FormatInt(value, 10))
	return e
}

// withValue gives a body of the event with some JSON as its value.
func (e *event) withValue(json string) []byte {
	return []byte(`{"event_id":"` + e.id + `","kind":"increment","value":` + json + `}`)
}

func (e *event) String() string { return fmt.Sprintf("%s +%d", e.id, e.value) }

// deliver sends the event in a new delivery of its own.
func (l *lab) deliver(ctx context.Context, e *event) (answer, error) {
	return l.deliverBody(ctx, e.body)
}

// deliverBody sends a body, signed as it should be, in a new delivery.
func (l *lab) deliverBody(ctx context.Context, body []byte) (answer, error) {
	d, err := l.sender.newDelivery(body)
	if err != nil {
		return answer{}, err
	}
	return l.deliverRaw(ctx, d)
}

// deliverRaw sends a delivery as it is. Its error is that the story cannot go on, not that no answer came.
func (l *lab) deliverRaw(ctx context.Context, d delivery) (answer, error) {
	got := l.sender.send(ctx, l.gate.url(), d)
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	if got.err != nil && l.gate.process.hasEnded() {
		return answer{}, l.gate.process.dead()
	}
	return got, nil
}

// The sender's patience when it retries.
const (
	maxTries = 8
	maxWait  = 8 * time.Second
)

// retry delivers the event as a sender that tries again, honouring Retry-After, until it gets a 200 or loses
// patience. It gives all answers.
func (l *lab) retry(ctx context.Context, e *event) ([]answer, error) {
	var answers []answer
	for {
		got, err := l.deliver(ctx, e)
		if err != nil {
			return answers, err
		}
		answers = append(answers, got)
		if got.status == 200 || len(answers) == maxTries {
			return answers, nil
		}
		wait := min(max(got.retryAfter(), time.Second), maxWait)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answers, ctx.Err()
		case <-timer.C:
		}
	}
}

// sight is what the observer sees at one moment.
type sight struct {
	total    int64 // the counter in the file
	applied  int64 // what its outcome rows add up to
	requests int64 // how many requests have reached the app
}

func (l *lab) look(ctx context.Context) (sight, error) {
	var s sight
	var err error
	if s.total, s.applied, err = l.ledger.Total(ctx); err != nil {
		return s, err
	}
	stats, err := l.app.stats(ctx)
	s.requests = stats.Requests
	return s, err
}

// working waits until the app works on a request.
func (l *lab) working(ctx context.Context) error {
	return await(ctx, "the app begins to work", 5*time.Second, func(ctx context.Context) (bool, error) {
		stats, err := l.app.stats(ctx)
		return stats.Working > 0, err
	})
}

// effected waits until the event's effect is in the file.
func (l *lab) effected(ctx context.Context, e *event) error {
	return await(ctx, "the effect of "+e.id, 5*time.Second, func(ctx context.Context) (bool, error) {
		_, ok, err := l.ledger.Outcome(ctx, e.id)
		return ok, err
	})
}
