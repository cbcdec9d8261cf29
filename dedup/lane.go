package dedup

import (
	"container/heap"
	"time"
)

// patience is how much nonsense in a row an app may say before it is taken for one that cannot be reached.
const patience = 3

// lane is what is to be resolved of one source. Its resolver's mu guards it.
type lane struct {
	source  string
	cases   map[string]*doubt // by event id
	queue   queue             // those of cases that nobody is at, by the time they are due
	running bool
	awake   chan struct{}

	odd   int           // how often in a row the app gave no answer that is one
	pause time.Duration // since the app cannot be reached; doubles
	until time.Time     // nothing before that
}

// doubt is one event to be resolved.
type doubt struct {
	key   Key
	due   time.Time
	gap   time.Duration // to the next question
	asked time.Time
	again bool          // brought in once more while somebody was at it
	busy  chan struct{} // closed when that is over; nil while nobody is at it
	place int           // in the queue
}

// add brings an event in, or forward.
func (l *lane) add(key Key, due time.Time) *doubt {
	d := l.cases[key.Event]
	switch {
	case d == nil:
		d = &doubt{key: key, due: due}
		l.cases[key.Event] = d
		heap.Push(&l.queue, d)
	case d.busy != nil:
		if !d.again || due.Before(d.due) {
			d.due = due
		}
		d.again = true
	case due.Before(d.due):
		d.due = due
		heap.Fix(&l.queue, d.place)
	}
	return d
}

// next takes the event that is due, or says how long to wait for one.
func (l *lane) next(now time.Time) (*doubt, time.Duration) {
	if len(l.queue) == 0 {
		return nil, time.Hour
	}
	due := l.queue[0].due
	if due.Before(l.until) {
		due = l.until
	}
	if wait := due.Sub(now); wait > 0 {
		return nil, wait
	}
	return l.queue[0], 0
}

// begin lets somebody be at an event.
func (l *lane) begin(d *doubt) {
	d.busy = make(chan struct{})
	l.queue.remove(d)
}

// anew begins again for a new config: what was asked for in vain may have an answer there.
func (l *lane) anew(now time.Time) {
	l.odd, l.pause, l.until = 0, 0, time.Time{}
	for _, d := range l.cases {
		if !d.asked.IsZero() && d.busy == nil && d.due.After(now) {
			d.due, d.gap = now, 0
		}
	}
	heap.Init(&l.queue)
}

// clear forgets every event that nobody is at.
func (l *lane) clear() {
	for _, d := range l.queue {
		delete(l.cases, d.key.Event)
	}
	l.queue = nil
}

// done notes what is left to do of an event that somebody was at.
func (l *lane) done(d *doubt, left remains, now time.Time) {
	close(d.busy)
	d.busy = nil
	d.asked = now
	switch answered := left.err == nil && !left.nonsense; {
	case left.nonsense:
		l.odd++
		if left.unreachable || l.odd > patience {
			l.pause = min(max(2*l.pause, firstGap), gonePause)
			l.until = now.Add(l.pause)
		}
	case answered && left.until.IsZero():
		l.odd, l.pause, l.until = 0, 0, time.Time{}
	}
	if left.nothing && !d.again {
		delete(l.cases, d.key.Event)
		return
	}
	d.gap = grown(d.gap, left.since, now)
	switch {
	case d.again: // as it was brought in
		d.again, d.gap = false, 0
	case !left.until.IsZero():
		d.due = left.until
	default:
		d.due = now.Add(d.gap)
	}
	heap.Push(&l.queue, d)
}

// grown is the gap after a gap, for an event that has not changed since then (zero: not known).
func grown(gap time.Duration, since, now time.Time) time.Duration {
	longest := longestGap
	if !since.IsZero() && now.Sub(since) > oldAfter {
		longest = oldGap
	}
	return min(max(2*gap, firstGap), longest)
}

// queue is a heap of events by the time they are due.
type queue []*doubt

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements [heap.Interface].
func (q *queue) Push(x any) {
	d := x.(*doubt)
	d.place = len(*q)
	*q = append(*q, d)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(*q) - 1
	d := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	d.place = -1
	return d
}

// remove takes an event out if it is in.
func (q *queue) remove(d *doubt) {
	if d.place >= 0 {
		heap.Remove(q, d.place)
	}
}
