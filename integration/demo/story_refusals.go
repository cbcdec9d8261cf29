package demo

import (
	"context"
	"slices"
	"strings"
)

// tellRefusals: what is forged, old, malformed, oversized or not agreed does not reach the app, leaves no
// trace, and does not use up an event's id.
func tellRefusals(ctx context.Context, l *lab) error {
	for _, r := range slices.Concat(forgeries(), malformed(), outsized()) {
		if err := l.tellRefusal(ctx, r); err != nil {
			return err
		}
	}
	if err := l.tellBadIDs(ctx); err != nil {
		return err
	}
	return l.tellLimit(ctx, l.newEvent(100))
}

// tellBadIDs sends events whose id is not of the agreed form. Such an id cannot be used later either.
func (l *lab) tellBadIDs(ctx context.Context) error {
	for _, bad := range []struct{ name, id string }{
		{"an event id in capitals", "evt-DEMO"},
		{"an event id of 41 characters after evt-", "evt-" + strings.Repeat("x", 41)},
		{"an empty event id", ""},
	} {
		e := &event{id: bad.id, value: 3}
		s, err := l.begin(ctx, bad.name, "+3")
		if err != nil {
			return err
		}
		got, err := l.deliverBody(ctx, e.withValue("3"))
		if err != nil {
			return err
		}
		s.answered(got, 422, "event_contract")
		if err := s.effect(ctx, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// tellLimit sends the largest body that is allowed.
func (l *lab) tellLimit(ctx context.Context, e *event) error {
	e.body = padded(e.body, limit)
	if err := l.tellFirst(ctx, "8192 bytes, and the largest value", e); err != nil {
		return err
	}
	return l.tellRepeat(ctx, "repeat of the 8192 bytes", e)
}
