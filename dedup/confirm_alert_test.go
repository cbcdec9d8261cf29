package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTwoReceiptsAreToldOf(t *testing.T) {
	t.Parallel()
	other := Answer{Status: 201, Header: done.Header, Body: []byte("done again")}
	for name, c := range map[string]struct {
		stands, says Outcome
		answer       Answer
		differs      int
	}{
		"the same":                 {Commit, Commit, done, 0},
		"another answer":           {Commit, Commit, other, 1},
		"rejected, then committed": {Reject, Commit, done, 1},
		"committed, then rejected": {Commit, Reject, done, 1},
		"committed, then aborted":  {Commit, Abort, Answer{}, 0},
		"rejected twice":           {Reject, Reject, done, 0},
	} {
		for by, say := range map[string]func(*testing.T, *shop, *Attempt) error{
			"callback": func(t *testing.T, s *shop, a *Attempt) error {
				_, err := s.confirm(t, a, c.says, c.answer)
				return err
			},
			"its owner": func(t *testing.T, _ *shop, a *Attempt) (err error) {
				switch c.says {
				case Commit:
					_, err = a.Commit(t.Context(), c.answer)
				case Reject:
					_, err = a.Reject(t.Context(), c.answer)
				default:
					err = a.Abort(t.Context())
				}
				return err
			},
			"its owner, late": func(t *testing.T, _ *shop, a *Attempt) error {
				a.Leave()
				if c.says == Abort {
					return nil // is no news any more
				}
				_, err := a.Confirm(t.Context(), c.says, c.answer)
				return err
			},
		} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				inShop(t, Redeliver, func(t *testing.T, s *shop) {
					first := s.attempt(t, "e")
					first.Leave()
					time.Sleep(time.Minute)
					second := s.attempt(t, "e")
					s.mustConfirm(t, first, c.stands, done)
					err := say(t, s, second)
					if by == "callback" && errors.Is(err, ErrReceiptDiffers) != (c.differs == 1) || by != "callback" && err != nil {
						t.Fatal(err)
					}
					s.mustNotice(t, c.differs, 0)
					for _, n := range s.of(NoticeReceiptDiffers) {
						if n.Key != first.Identity.Key || n.Attempt != second.Number || !n.Receipt.AnsweredBy(first.Number) || !errors.Is(n.Err, ErrReceiptDiffers) {
							t.Fatalf("%+v", n)
						}
					}
					if r := s.mustBe(t, "e", map[Outcome]State{Commit: StateCommitted, Reject: StateRejected}[c.stands]); !r.Answer.Equal(done) {
						t.Fatal("the first receipt does not stand")
					}
					second.Leave()
				})
			})
		}
	}
}

func TestAClosedAttemptThatCommitsIsToldOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say     func(*testing.T, *shop, *Attempt) error
		err     error
		notices int
	}{
		"by callback": {func(t *testing.T, s *shop, a *Attempt) error {
			_, err := s.confirm(t, a, Commit, done)
			return err
		}, ErrAttemptClosed, 1},
		"by its owner, late": {func(t *testing.T, _ *shop, a *Attempt) error {
			_, err := a.Confirm(t.Context(), Commit, done)
			return err
		}, ErrAttemptClosed, 1},
		"it aborts": {func(t *testing.T, s *shop, a *Attempt) error {
			_, err := s.confirm(t, a, Abort, Answer{})
			return err
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(Reply{Kind: ReplyFenced}, nil)
				a := s.attempt(t, "e")
				a.Leave()
				time.Sleep(time.Hour)
				if r := s.mustBe(t, "e", StateOpen); r.Closed != a.Number {
					t.Fatalf("%+v", r)
				}
				if err := c.say(t, s, a); !errors.Is(err, c.err) {
					t.Fatal(err)
				}
				s.mustNotice(t, 0, c.notices)
				for _, n := range s.of(NoticeAttemptClosed) {
					if n.Key != a.Identity.Key || n.Attempt != a.Number || n.Receipt.State != StateOpen {
						t.Fatalf("%+v", n)
					}
				}
				s.mustBe(t, "e", StateOpen)
			})
		})
	}
}

func TestAWrongTokenMovesNothingAndTellsNothing(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a, b := s.attempt(t, "a"), s.attempt(t, "b")
		for token, want := range map[string]error{b.Token: ErrUnknownAttempt, "": ErrUnknownAttempt, a.Token + "0": ErrUnknownAttempt} {
			if _, err := s.Confirm(t.Context(), a.Identity.Key, token, Commit, done); !errors.Is(err, want) {
				t.Fatal(err)
			}
			if known, err := s.Knows(t.Context(), a.Identity.Key, token); known || err != nil {
				t.Fatal(known, err)
			}
		}
		if known, err := s.Knows(t.Context(), a.Identity.Key, a.Token); !known || err != nil {
			t.Fatal(known, err)
		}
		if known, err := s.Knows(t.Context(), Key{"shop", "never seen"}, a.Token); known || err != nil {
			t.Fatal(known, err)
		}
		if _, err := s.Confirm(t.Context(), Key{"shop", "never seen"}, a.Token, Commit, done); !errors.Is(err, ErrUnknownEvent) {
			t.Fatal(err)
		}
		if isConfirmed(a) || isConfirmed(b) {
			t.Fatal("woken by a wrong token")
		}
		s.mustLookUp(t, event("a"), Running)
		s.mustNotice(t, 0, 0)
		a.Leave()
		b.Leave()
	})
}

func TestAClosedAttemptsCommitIsToldOfWhenTheEventIsFinal(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyFenced}, nil)
		first := s.attempt(t, "e")
		first.Leave()
		time.Sleep(time.Hour)
		if _, err := s.attempt(t, "e").Commit(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		// The second attempt's answer: the app found its row. Nothing happened twice.
		if _, err := first.Confirm(t.Context(), Commit, done); err != nil {
			t.Fatal(err)
		}
		s.mustConfirm(t, first, Commit, done)
		s.mustNotice(t, 0, 0)
		other := Answer{Status: 299}
		if _, err := first.Confirm(t.Context(), Commit, other); err != nil && !errors.Is(err, ErrAttemptClosed) {
			t.Fatal(err)
		}
		s.mustNotice(t, 0, 1)
		if _, err := s.confirm(t, first, Commit, other); !errors.Is(err, ErrAttemptClosed) {
			t.Fatal(err)
		}
		s.mustNotice(t, 0, 2)
	})
}

func TestAClosedAttemptThatRejectsProvesNoEffect(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyFenced}, nil)
		a := s.attempt(t, "e")
		a.Leave()
		time.Sleep(time.Hour)
		if _, err := s.confirm(t, a, Reject, done); !errors.Is(err, ErrAttemptClosed) {
			t.Fatal(err)
		}
		s.mustNotice(t, 0, 0)
	})
}

func TestTheAnswerToAQuestionIsHeldAgainstTheReceipt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		if err := s.attempt(t, "e").Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := s.attempt(t, "e").Commit(t.Context(), Answer{Status: 299}); err != nil {
			t.Fatal(err)
		}
		close(let)
		synctest.Wait()
		s.mustNotice(t, 1, 0)
	})
}
