package dedup

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestALaneKeepsItsOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := &lane{cases: map[string]*doubt{}}
		now := noon
		var busy []*doubt
		for range 2000 {
			now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
			switch random.IntN(4) {
			case 0, 1:
				l.add(Key{"shop", strconv.Itoa(random.IntN(40))}, now.Add(time.Duration(random.IntN(120)-60)*time.Second))
			case 2:
				d, wait := l.next(now)
				if d == nil && wait <= 0 {
					t.Fatal("nothing to do, and no time to wait")
				}
				if d == nil && random.IntN(2) == 0 && len(l.queue) > 0 { // a delivery takes one out of the middle
					d = l.queue[random.IntN(len(l.queue))]
				}
				if d != nil {
					l.begin(d)
					busy = append(busy, d)
				}
			case 3:
				if len(busy) == 0 {
					continue
				}
				i := random.IntN(len(busy))
				d, over := busy[i], busy[i].busy
				busy = append(busy[:i], busy[i+1:]...)
				left := []remains{{}, {nothing: true}, {unreachable: true}, {until: now.Add(time.Minute)}, {err: ErrUnavailable}}
				l.done(d, left[random.IntN(len(left))], now)
				select {
				case <-over:
				default:
					t.Fatal("whoever waits for the question is not told")
				}
			}
			check(t, l, len(busy))
		}
	}
}

// check holds a lane's queue against its events.
func check(t *testing.T, l *lane, busy int) {
	t.Helper()
	if len(l.queue)+busy != len(l.cases) {
		t.Fatalf("%d queued and %d busy of %d", len(l.queue), busy, len(l.cases))
	}
	for i, d := range l.queue {
		if d.place != i || d.busy != nil || l.cases[d.key.Event] != d {
			t.Fatalf("place %d: %+v", i, d)
		}
		if parent := (i - 1) / 2; d.due.Before(l.queue[parent].due) {
			t.Fatalf("%d is due before %d", i, parent)
		}
		if d.gap < 0 || d.gap > oldGap {
			t.Fatal(d.gap)
		}
	}
}

func TestWhatIsBroughtInWhileSomebodyIsAtItIsNotLost(t *testing.T) {
	t.Parallel()
	l := &lane{cases: map[string]*doubt{}}
	d := l.add(Key{"shop", "e"}, noon)
	l.begin(d)
	l.add(d.key, noon.Add(time.Hour))
	l.add(d.key, noon.Add(time.Minute))
	l.add(d.key, noon.Add(2*time.Hour)) // the earliest counts
	l.done(d, remains{nothing: true}, noon)
	if got, wait := l.next(noon); got != nil || wait != time.Minute {
		t.Fatal(got, wait)
	}
	l.begin(d)
	d.gap = longestGap
	l.add(d.key, noon)
	l.done(d, remains{}, noon.Add(time.Minute))
	l.begin(d)
	l.done(d, remains{}, noon.Add(time.Minute))
	if _, wait := l.next(noon.Add(time.Minute)); wait != firstGap {
		t.Fatal("its gaps do not begin anew:", wait)
	}
	l.begin(d)
	l.done(d, remains{nothing: true}, noon.Add(time.Minute))
	if len(l.cases) != 0 || len(l.queue) != 0 {
		t.Fatal("kept though nothing is left to do")
	}
}

func TestBringingInBringsForwardOnly(t *testing.T) {
	t.Parallel()
	l := &lane{cases: map[string]*doubt{}}
	l.add(Key{"shop", "a"}, noon.Add(time.Minute))
	l.add(Key{"shop", "b"}, noon.Add(2*time.Minute))
	l.add(Key{"shop", "a"}, noon.Add(time.Hour))
	if _, wait := l.next(noon); wait != time.Minute {
		t.Fatal(wait)
	}
	l.add(Key{"shop", "b"}, noon)
	if d, _ := l.next(noon); d == nil || d.key.Event != "b" {
		t.Fatal(d)
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		gap, age, want time.Duration
	}{
		"the first":                {0, time.Minute, time.Second},
		"the second":               {time.Second, time.Minute, 2 * time.Second},
		"the longest":              {4 * time.Minute, time.Hour, 5 * time.Minute},
		"it stays the longest":     {5 * time.Minute, day, 5 * time.Minute},
		"later, they grow again":   {5 * time.Minute, day + time.Second, 10 * time.Minute},
		"up to an hour":            {40 * time.Minute, 30 * day, time.Hour},
		"and begin small":          {0, 30 * day, time.Second},
		"shorter when it is young": {time.Hour, time.Minute, 5 * time.Minute},
		"a clock turned back":      {time.Minute, -day, 2 * time.Minute},
	} {
		if got := grown(c.gap, noon.Add(-c.age), noon); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := grown(time.Hour, time.Time{}, noon); got != longestGap {
		t.Error("not known since when:", got)
	}
}

func TestAnAppThatCannotBeReachedIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := &lane{cases: map[string]*doubt{}}
	now := noon
	for i := range 3 {
		l.add(Key{"shop", strconv.Itoa(i)}, now)
	}
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		pause := time.Duration(seconds) * time.Second
		d, _ := l.next(now)
		if d == nil {
			t.Fatal("nothing is due")
		}
		l.begin(d)
		l.done(d, remains{unreachable: true, nonsense: true}, now)
		if d, wait := l.next(now); d != nil || wait != pause {
			t.Fatalf("waits %v, want %v", wait, pause)
		}
		now = now.Add(pause)
	}
	d, _ := l.next(now)
	l.begin(d)
	l.done(d, remains{unreachable: true, nonsense: true}, now)
	d = l.queue[1] // a delivery of another event asks meanwhile
	l.begin(d)
	l.done(d, remains{err: ErrUnavailable}, now) // which teaches nothing
	if d, wait := l.next(now); d != nil || wait != gonePause {
		t.Fatal(d, wait)
	}
	d = l.queue[1]
	l.begin(d)
	l.done(d, remains{nothing: true}, now) // it is back
	if d, wait := l.next(now); d == nil && wait > firstGap {
		t.Fatal("the others still wait", wait)
	}
	now = now.Add(longestGap)
	d, _ = l.next(now)
	l.begin(d)
	l.done(d, remains{unreachable: true, nonsense: true}, now)
	if _, wait := l.next(now); wait != firstGap {
		t.Fatal("the pauses do not begin anew:", wait)
	}
}

func TestAnAppThatSaysNothingButNonsenseIsLeftAloneToo(t *testing.T) {
	t.Parallel()
	l := &lane{cases: map[string]*doubt{}}
	now := time.Unix(0, 0)
	for i := range 10 {
		l.add(Key{"shop", strconv.Itoa(i)}, now)
	}
	asked := 0
	for ; asked < 10; asked++ {
		d, wait := l.next(now)
		if d == nil {
			if wait != firstGap {
				t.Fatal(wait)
			}
			break
		}
		l.begin(d)
		l.done(d, remains{nonsense: true}, now)
	}
	if asked != patience+1 {
		t.Fatalf("%d questions in a row", asked)
	}
	d, _ := l.next(now.Add(firstGap))
	l.begin(d)
	l.done(d, remains{}, now.Add(firstGap))
	if d, _ := l.next(now.Add(firstGap)); d == nil {
		t.Fatal("an answer does not end the pause")
	}
}
