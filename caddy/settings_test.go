package caddy

import (
	"testing"
	"time"

	"github.com/einlass/einlass/verifier"
)

func TestAnswerWithinKeepsAMarginBelowTheSendersDeadline(t *testing.T) {
	t.Parallel()
	for deadline, want := range map[time.Duration]time.Duration{
		0:                8 * time.Second,
		3 * time.Second:  2500 * time.Millisecond,
		5 * time.Second:  4500 * time.Millisecond,
		10 * time.Second: 9 * time.Second,
		15 * time.Second: 13500 * time.Millisecond,
		time.Second:      500 * time.Millisecond,
	} {
		if got := answerWithin(deadline); got != want {
			t.Errorf("deadline %s: got %s, want %s", deadline, got, want)
		}
	}
}

func TestEveryPresetIsACompleteSource(t *testing.T) {
	t.Parallel()
	for _, p := range verifier.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			s, err := new(Handler).resolve(p.Name, p.Facts)
			if err != nil {
				t.Fatalf("one line is not a complete gate: %v", err)
			}
			if s.source != p.Name || s.maxBody <= 0 || s.policy.Lease < s.forwardTimeout+leaseMinMargin {
				t.Errorf("got %+v", s)
			}
		})
	}
}
