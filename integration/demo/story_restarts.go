package demo

import (
	"context"
	"fmt"
)

// tellRestarts: the gate is stopped and killed, and its receipts still decide.
func tellRestarts(ctx context.Context, l *lab) error {
	e := l.newEvent(23)
	if err := l.tellFirst(ctx, "an event before the restarts", e); err != nil {
		return err
	}
	for _, end := range []struct {
		name string
		stop func() error
	}{
		{"SIGTERM", func() error { return l.gate.process.terminate() }},
		{"kill -9", func() error { return l.gate.process.kill() }},
	} {
		if err := l.tellRestart(ctx, end.name, end.stop); err != nil {
			return err
		}
		if err := l.tellRepeat(ctx, "repeat after "+end.name, e); err != nil {
			return err
		}
		if err := l.tellConflict(ctx, "other bytes after "+end.name, e, e.withValue("24")); err != nil {
			return err
		}
		if err := l.tellFirst(ctx, "a new event after "+end.name, l.newEvent(2)); err != nil {
			return err
		}
	}
	return l.tellKilledAtWork(ctx, l.newEvent(29))
}

// tellRestart ends the gate and starts it again on the same files.
func (l *lab) tellRestart(ctx context.Context, how string, stop func() error) error {
	s, err := l.begin(ctx, "the gate is ended by "+how, "")
	if err != nil {
		return err
	}
	old := l.gate.process.cmd.Process.Pid
	if err := stop(); err != nil {
		return err
	}
	s.check("the old process is gone", l.gate.process.hasEnded(), old)
	if err := l.gate.start(ctx); err != nil {
		return err
	}
	s.Answer = "it is started again"
	s.check("another process has its place", l.gate.process.cmd.Process.Pid != old, old)
	return s.effect(ctx, 0, 0)
}

const killMS = 700

// tellKilledAtWork kills the gate while the app works on an event.
func (l *lab) tellKilledAtWork(ctx context.Context, e *event) error {
	s, err := l.begin(ctx, "the gate is killed while the app works", e.String())
	if err != nil {
		return err
	}
	got, err := l.interrupt(ctx, e, killMS, func(context.CancelFunc) error { return l.gate.process.kill() })
	if err != nil {
		return err
	}
	s.Answer = got.String()
	s.check("the sender gets no answer", got.status == 0, got)
	if err := l.effected(ctx, e); err != nil {
		return err
	}
	if err := s.effect(ctx, e.value, 1); err != nil {
		return err
	}
	if err := s.row(ctx, e); err != nil {
		return err
	}
	if err := l.gate.start(ctx); err != nil {
		return fmt.Errorf("start the gate again: %w", err)
	}
	return l.tellPatience(ctx, "the sender tries again after the kill", e, 1)
}
