package demo

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/einlass/einlass/integration/demo/counter"
)

// tellRepeats: one effect per event, one answer for all its deliveries, other content refused.
func tellRepeats(ctx context.Context, l *lab) error {
	first, later := l.newEvent(5), l.newEvent(7)
	for _, part := range []func() error{
		func() error { return l.tellFirst(ctx, "first delivery", first) },
		func() error { return l.tellRepeat(ctx, "the same event in another delivery", first) },
		func() error { return l.tellFirst(ctx, "a later event", later) },
		func() error { return l.tellRepeat(ctx, "repeat, after the counter has moved on", first) },
		func() error {
			return l.tellConflict(ctx, "the same id with another value", first, first.withValue("6"))
		},
		func() error {
			return l.tellConflict(ctx, "the same id with a blank more", first, append(bytes.Clone(first.body), ' '))
		},
		func() error { return l.tellRepeat(ctx, "repeat, after the conflicts", first) },
		func() error { return l.tellParallel(ctx, l.newEvent(11)) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// tellFirst delivers an event that is new.
func (l *lab) tellFirst(ctx context.Context, name string, e *event) error {
	s, err := l.begin(ctx, name, e.String())
	if err != nil {
		return err
	}
	got, err := l.deliver(ctx, e)
	if err != nil {
		return err
	}
	s.processed(e, got)
	if err := s.effect(ctx, e.value, 1); err != nil {
		return err
	}
	return s.row(ctx, e)
}

// tellRepeat delivers an event that was processed before.
func (l *lab) tellRepeat(ctx context.Context, name string, e *event) error {
	s, err := l.begin(ctx, name, e.String())
	if err != nil {
		return err
	}
	got, err := l.deliver(ctx, e)
	if err != nil {
		return err
	}
	s.repeated(e, got)
	return s.effect(ctx, 0, 0)
}

// tellConflict delivers other bytes under the id of an event that was processed before.
func (l *lab) tellConflict(ctx context.Context, name string, e *event, body []byte) error {
	s, err := l.begin(ctx, name, e.id+", other bytes")
	if err != nil {
		return err
	}
	got, err := l.deliverBody(ctx, body)
	if err != nil {
		return err
	}
	s.answered(got, 409, "event_conflict")
	checkEqual(s.Step, "it does not ask for another try", got.header.Get("Retry-After"), "")
	return s.effect(ctx, 0, 0)
}

const (
	parallel   = 8
	parallelMS = 500 // how long the app takes meanwhile
)

// tellParallel sends one event in eight deliveries at once, to an app that takes its time.
func (l *lab) tellParallel(ctx context.Context, e *event) error {
	s, err := l.begin(ctx, "eight deliveries at once, the app is slow", fmt.Sprintf("%d × %s", parallel, e))
	if err != nil {
		return err
	}
	if err := l.app.arm(ctx, counter.Fault{EventID: e.id, Fault: counter.Slow, SlowMS: parallelMS}); err != nil {
		return err
	}
	answers, err := l.deliverTogether(ctx, e)
	if err != nil {
		return err
	}
	originals, equal, all200 := 0, true, true
	for _, got := range answers {
		if !got.isDuplicate() {
			originals++
			e.original = got
		}
		equal = equal && bytes.Equal(got.body, answers[0].body)
		all200 = all200 && got.status == 200
	}
	s.Answer = fmt.Sprintf("%d × %s", parallel, e.original)
	s.check("every answer is 200", all200, answers)
	s.check("every answer has the same body", equal, answers)
	checkEqual(s.Step, "it gives the counter after the event", e.original.total(), s.before.total+e.value)
	checkEqual(s.Step, "all but one are marked as repeats", originals, 1)
	if err := s.effect(ctx, e.value, 1); err != nil {
		return err
	}
	if err := s.row(ctx, e); err != nil {
		return err
	}
	return l.tellRepeat(ctx, "repeat, after the eight", e)
}

// deliverTogether sends the event in many deliveries that start at the same moment.
func (l *lab) deliverTogether(ctx context.Context, e *event) ([]answer, error) {
	deliveries := make([]delivery, parallel)
	for i := range deliveries {
		var err error
		if deliveries[i], err = l.sender.newDelivery(e.body); err != nil {
			return nil, err
		}
	}
	answers, errs := make([]answer, parallel), make([]error, parallel)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range deliveries {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = l.deliverRaw(ctx, deliveries[i])
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}
