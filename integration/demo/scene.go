package demo

import (
	"context"
	"fmt"
)

// scene is a step while it happens: it remembers what the observer saw before.
type scene struct {
	*Step
	lab    *lab
	before sight
}

// begin opens a step. sent says what will be sent, in a few words.
func (l *lab) begin(ctx context.Context, name, sent string) (*scene, error) {
	l.progress(name)
	before, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	step := &Step{Name: name, Sent: sent, OK: true}
	l.report.Steps = append(l.report.Steps, step)
	return &scene{Step: step, lab: l, before: before}, nil
}

// answered judges the status of an answer, and the code of a refusal ("" where the answer is the app's).
func (s *scene) answered(got answer, status int, code string) {
	s.Answer = got.String()
	name := fmt.Sprintf("the answer is %d", status)
	if code != "" {
		name += " " + code
	}
	s.check(name, got.status == status && got.code() == code, got)
}

// processed judges the answer to an event's first processing and keeps it as the event's original.
func (s *scene) processed(e *event, got answer) {
	s.answered(got, 200, "")
	checkEqual(s.Step, "it gives the counter after the event", got.total(), s.before.total+e.value)
	checkEqual(s.Step, "it is not marked as a repeat", got.header.Get("Webhook-Gate-Receipt"), "")
	e.original = got
}

// repeated judges the answer to a repeat: the event's original, marked.
func (s *scene) repeated(e *event, got answer) {
	s.answered(got, 200, "")
	checkEqual(s.Step, "the body is the original's, byte for byte", string(got.body), string(e.original.body))
	checkEqual(s.Step, "it is marked as a repeat", got.header.Get("Webhook-Gate-Receipt"), "duplicate")
}

// effect judges what changed in the file, and how many requests reached the app.
func (s *scene) effect(ctx context.Context, change, requests int64) error {
	after, err := s.lab.look(ctx)
	if err != nil {
		return err
	}
	s.Effect = fmt.Sprintf("%+d, now %d", after.total-s.before.total, after.total)
	name := "the counter is unchanged"
	if change != 0 {
		name = fmt.Sprintf("the counter has grown by %d", change)
	}
	checkEqual(s.Step, name, after.total-s.before.total, change)
	checkEqual(s.Step, "the counter is the sum of its outcomes", after.applied, after.total)
	name = "the app was not called"
	if requests != 0 {
		name = fmt.Sprintf("the app was called %s", times(requests))
	}
	checkEqual(s.Step, name, after.requests-s.before.requests, requests)
	return nil
}

// row judges the outcome row of an event that was processed.
func (s *scene) row(ctx context.Context, e *event) error {
	outcome, ok, err := s.lab.ledger.Outcome(ctx, e.id)
	if err != nil {
		return err
	}
	s.check("the file has the event's outcome", ok && outcome.Applied == e.value, fmt.Sprintf("%+v, %v", outcome, ok))
	s.check("the outcome has the attempt's token", len(outcome.Token) >= 16, fmt.Sprintf("%d characters", len(outcome.Token)))
	return nil
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
