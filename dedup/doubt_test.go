package dedup

import (
	"testing"
	"time"
)

func TestAFenceAroundAnAttemptThatWasNotNamedClosesNothing(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyFenced}, nil)
		id := event("e")
		reserved, err := s.store.Apply(t.Context(), Reserve{Identity: id, At: time.Now(), Lease: time.Minute, Seed: Seed{66}})
		if err != nil {
			t.Fatal(err)
		}
		s.mustLookUp(t, id, InDoubt)
		if _, err := s.Gate.Ask(t.Context(), id, s.policy); err != nil {
			t.Fatal(err)
		}
		if r := s.mustBe(t, "e", StateOpen); r.Closed != 0 || r.Attempt != reserved.Receipt.Attempt {
			t.Fatalf("%+v", r)
		}
	})
}

func TestADroppedBodyIsNoOtherReceipt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		dropped := done
		dropped.Body, dropped.BodyDropped = nil, true
		if _, err := a.Commit(t.Context(), dropped); err != nil {
			t.Fatal(err)
		}
		s.mustConfirm(t, a, Commit, done)
		s.mustNotice(t, 0, 0)
	})
}

func TestAnAcceptedEventIsAskedAboutAtItsNextDelivery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply Reply
		want  Kind
	}{
		"committed":     {Reply{Kind: ReplyCommitted, Answer: done}, Replay},
		"unknown":       {Reply{Kind: ReplyAbsent}, Again},
		"still at work": {Reply{Kind: ReplyPending}, Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(c.reply, nil)
				a := s.attempt(t, "e")
				a.Accept()
				if v := s.mustLookUp(t, event("e"), Running); !v.Accepted {
					t.Fatalf("%+v", v)
				}
				v, err := s.Gate.Ask(t.Context(), event("e"), s.policy)
				if err != nil || v.Kind != c.want {
					t.Fatal(v.Kind, err)
				}
				if isConfirmed(a) != (c.want != Running) {
					t.Fatal("its sender is not told")
				}
			})
		})
	}
}

func TestAnAttemptThatRunsIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyAbsent}, nil)
		a := s.attempt(t, "e")
		if v, err := s.Gate.Ask(t.Context(), event("e"), s.policy); err != nil || v.Kind != Running || v.Accepted {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t)
		a.Leave()
	})
}

func TestAnAttemptConfirmsHoweverManyAreNewer(t *testing.T) {
	t.Parallel()
	inShop(t, Redeliver, func(t *testing.T, s *shop) {
		first := s.attempt(t, "e")
		first.Leave()
		for range 2 * MaxTokens {
			time.Sleep(s.policy.Lease)
			s.attempt(t, "e").Leave()
		}
		if known, err := s.Knows(t.Context(), first.Identity.Key, first.Token); err != nil || !known {
			t.Fatal(known, err)
		}
		if r := s.mustConfirm(t, first, Commit, done); !r.AnsweredBy(first.Number) {
			t.Fatalf("%+v", r)
		}
	})
}
