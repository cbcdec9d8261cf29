package deduptest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
)

// Simulate runs a random history against a store and, in step, against the memory store and fails at the first
// difference. reopen closes the store and opens it again; it is called in between, and at the end. What is returned is
// the store as it was opened last.
func Simulate(t *testing.T, seed uint64, steps int, store dedup.Store, reopen func(dedup.Store) dedup.Store) dedup.Store {
	t.Helper()
	s := &simulation{T: t, history: newHistory(seed), model: dedup.NewMemory(), store: store, seen: map[string]int{}}
	for s.step = range steps {
		if s.random.IntN(250) == 0 {
			s.store = reopen(s.store)
			if s.random.IntN(8) == 0 {
				s.undecided()
			}
		}
		s.next()
	}
	s.store = reopen(s.store)
	for _, id := range s.everyone() {
		s.same(id)
	}
	s.undecided()
	if want, got := s.model.Stats().Receipts, s.store.Stats().Receipts; want != got {
		t.Fatalf("seed %d, at the end: counts %v, the model's %v", seed, got, want)
	}
	t.Logf("seed %d: %d operations, %d events, most attempts of one %d", seed, steps, len(s.everyone()), s.attempts)
	s.coverage(steps)
	return s.store
}

// simulation is a store and its model in step.
type simulation struct {
	*testing.T
	*history
	step  int
	model *dedup.Memory
	store dedup.Store

	seen     map[string]int // what transitions have led to
	attempts uint32         // of the event with the most
}

// next applies one random transition to both.
func (s *simulation) next() {
	s.Helper()
	s.advance(s.step)
	id := s.identity()
	known, _, err := s.model.Lookup(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	tr := s.transition(id, known)
	want, wantErr := s.model.Apply(s.Context(), tr)
	got, gotErr := s.store.Apply(s.Context(), tr)
	if errors.Unwrap(wantErr) != errors.Unwrap(gotErr) { //nolint:errorlint // the very sentinel is meant
		s.Fatalf("%s: %#v: error %v, the model's %v", s.when(), tr, gotErr, wantErr)
	}
	if !reflect.DeepEqual(want, got) { // also where the rules refuse it
		s.Fatalf("%s: %#v, %v:\n%+v, the model's\n%+v", s.when(), tr, gotErr, got, want)
	}
	s.same(tr.Of())
	s.same(s.identity())
	s.note(tr, got, gotErr)
}

func (s *simulation) when() string { return fmt.Sprintf("seed %d, step %d", s.seed, s.step) }

// same looks an event up in both.
func (s *simulation) same(id dedup.Identity) {
	s.Helper()
	want, wantFound, err := s.model.Lookup(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	got, found, err := s.store.Lookup(s.Context(), id)
	if err != nil || found != wantFound || !reflect.DeepEqual(want, got) {
		s.Fatalf("%s, lookup of %+v: %t, %v\n%+v, the model's %t\n%+v", s.when(), id, found, err, got, wantFound, want)
	}
}

// undecided reads what is undecided from both.
func (s *simulation) undecided() {
	s.Helper()
	want := map[dedup.Key]dedup.Receipt{}
	for r, err := range s.model.Undecided(s.Context()) {
		if err != nil {
			s.Fatal(err)
		}
		want[r.Key] = r
	}
	for r, err := range s.store.Undecided(s.Context()) {
		if err != nil || !reflect.DeepEqual(r, want[r.Key]) {
			s.Fatalf("%s: undecided %+v, %v; the model's\n%+v", s.when(), r, err, want[r.Key])
		}
		delete(want, r.Key)
	}
	if len(want) > 0 {
		s.Fatalf("%s: undecided in the model only: %v", s.when(), want)
	}
}

func (s *simulation) note(tr dedup.Transition, res dedup.Result, err error) {
	s.attempts = max(s.attempts, res.Receipt.Attempts)
	outcome := res.Kind.String()
	if err != nil {
		outcome = errors.Unwrap(err).Error()
	} else if res.Changed {
		outcome += ", written"
	}
	s.seen[fmt.Sprintf("%T: %s", tr, outcome)]++
}

// coverage fails if a long history has not come everywhere: it would prove less than it seems to.
func (s *simulation) coverage(steps int) {
	s.Helper()
	if steps < 20_000 {
		return
	}
	for transition, outcomes := range map[string][]string{
		"Reserve": {"forward, written", "replay", "conflict", "in doubt", "held", "held, written"},
		"Finish":  {"again, written", "again", "replay, written", "replay", "in doubt", "held", "unknown event", "unknown attempt", "attempt closed", "transition not allowed"},
		"Confirm": {"again, written", "again", "replay, written", "replay", "in doubt", "held", "unknown event", "unknown attempt", "attempt closed", "receipt differs", "transition not allowed"},
		"Absent":  {"again, written", "again", "replay", "in doubt, written", "in doubt", "held", "unknown event", "unknown attempt"},
		"Extend":  {"again", "replay", "in doubt, written", "in doubt", "held", "unknown event", "unknown attempt"},
		"Hold":    {"held, written", "held", "unknown event", "transition not allowed"},
	} {
		for _, outcome := range outcomes {
			if s.seen["dedup."+transition+": "+outcome] == 0 {
				s.Errorf("seed %d: no %s has led to %q", s.seed, transition, outcome)
			}
		}
	}
	if s.attempts <= dedup.MaxTokens {
		s.Errorf("seed %d: no event had more than %d attempts", s.seed, s.attempts)
	}
}

// history makes random transitions. Its events come in eras, or all of them would soon be final; now and then an
// earlier one is met again.
type history struct {
	random *rand.Rand
	seed   uint64
	era    int
	after  time.Duration
}

const (
	eraSteps = 400
	eraIDs   = 12
	bodies   = 8 // of an era; mostly an id comes with one and the same, or nothing would ever come to an end
	longEra  = 8 // in every so many eras a single event has all the attempts
)

func newHistory(seed uint64) *history {
	return &history{random: rand.New(rand.NewPCG(seed, 0)), seed: seed}
}

// advance lets time pass, also backwards.
func (h *history) advance(step int) {
	h.era = step / eraSteps
	h.after += time.Duration(h.random.Int64N(int64(Lease/3))) - Lease/30
}

// long tells whether in this era a single event has all the attempts.
func (h *history) long(era int) bool { return era%longEra == longEra-1 }
