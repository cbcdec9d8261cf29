package dedup

import (
	"context"
	"sync"
	"time"
)

// Pauses of the resolver.
const (
	firstGap   = time.Second      // between an event's first two questions; doubles
	longestGap = 5 * time.Minute  // for a day after the event has last changed
	oldGap     = time.Hour        // later
	oldAfter   = 24 * time.Hour   //
	askPause   = time.Second      // between two questions that deliveries of an event cause
	rescan     = 10 * time.Second // after the store's undecided events could not be read; doubles
	gonePause  = time.Minute      // the longest that an app which cannot be reached is left alone
)

// resolver asks for the events that are in doubt, for as long as they are: at once after a restart, at the end of
// the lease, at the next delivery, then with growing gaps; also while an event is open and its newest attempt may
// still confirm (rule 2). It belongs to the store, so it outlives every config, and does what the newest one says.
//
// Each source has a lane of its own, in which one question is put at a time: an app that does not answer holds up
// its own events only.
type resolver struct {
	gate   *Gate
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex // guards all below, and the lanes
	closed  bool
	configs []*config // the last one counts
	lanes   map[string]*lane
	scans   uint64 // how many were begun; the last one counts
}

// config is what one configuration says of its sources.
type config struct{ sources map[string]Policy }

func newResolver(g *Gate) *resolver {
	r := &resolver{gate: g, lanes: map[string]*lane{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Use makes the gate resolve what is in doubt by these policies, by the sources' names, until the returned function
// is called; the policies of the latest Use count. Sources that are not named are left as they are. The map must not be
// changed afterwards.
func (g *Gate) Use(sources map[string]Policy) (stop func()) {
	r, c := g.resolver, &config{sources}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs = append(r.configs, c)
	r.changed()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, other := range r.configs {
			if other == c {
				r.configs = append(r.configs[:i:i], r.configs[i+1:]...)
				if i == len(r.configs) { // it was the one that counted
					r.changed()
				}
				return
			}
		}
	}
}

// changed looks anew at what is to be resolved. The caller holds mu.
func (r *resolver) changed() {
	if r.closed || len(r.configs) == 0 {
		return
	}
	now := r.gate.now()
	for _, l := range r.lanes {
		if _, ok := r.policy(l.source); ok {
			l.anew(now)
		} else {
			l.clear() // a config that has the source again scans anew
		}
		r.stir(l)
	}
	for _, p := range r.configs[len(r.configs)-1].sources {
		if p.resolves() {
			r.scans++
			number := r.scans
			r.group.Go(func() { r.scan(number) })
			return
		}
	}
}

// policy is what counts for a source. The caller holds mu.
func (r *resolver) policy(source string) (Policy, bool) {
	if r.closed || len(r.configs) == 0 {
		return Policy{}, false
	}
	p, ok := r.configs[len(r.configs)-1].sources[source]
	return p, ok && p.resolves()
}

// resolves tells whether there is something to do in the background.
func (p Policy) resolves() bool {
	return p.InDoubt == Ask && p.Asker != nil || p.InDoubt == HoldForPerson
}

// scan brings in what the store holds undecided. One that fails tries again until a newer one has begun: a record that
// is damaged fails each of them.
func (r *resolver) scan(number uint64) {
	for pause := rescan; ; pause = min(2*pause, longestGap) {
		err := r.scanOnce()
		if err == nil || r.ctx.Err() != nil {
			return
		}
		r.gate.notify(Notice{Kind: NoticeScanFailed, Err: err})
		if !r.pause(pause) || !r.newest(number) {
			return
		}
	}
}

func (r *resolver) newest(scan uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scan == r.scans
}

func (r *resolver) scanOnce() error {
	for receipt, err := range r.gate.store.Undecided(r.ctx) {
		if err != nil {
			return err
		}
		if !receipt.MayConfirm() {
			continue
		}
		due := receipt.Lease
		if receipt.Owner != r.gate.owner {
			due = r.gate.now() // the process that made it is gone
		}
		r.discover(receipt.Key, due)
	}
	return nil
}

// discover tracks an event that is not tracked yet.
func (r *resolver) discover(key Key, due time.Time) {
	r.mu.Lock()
	known := r.lane(key.Source).cases[key.Event] != nil
	r.mu.Unlock()
	if !known {
		r.track(key, due)
	}
}

func (r *resolver) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// track sees to it that the event is dealt with at a time, or earlier if it was to be so already.
func (r *resolver) track(key Key, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.policy(key.Source); !ok {
		return // a config that changes that will look for itself
	}
	l := r.lane(key.Source)
	l.add(key, due)
	r.wake(l)
}

// lane is the source's. The caller holds mu.
func (r *resolver) lane(source string) *lane {
	l := r.lanes[source]
	if l == nil {
		l = &lane{source: source, cases: map[string]*doubt{}, awake: make(chan struct{}, 1)}
		r.lanes[source] = l
	}
	return l
}

// wake lets the lane look at its events anew. The caller holds mu.
func (r *resolver) wake(l *lane) {
	if _, ok := r.policy(l.source); !ok || len(l.cases) == 0 {
		return
	}
	r.stir(l)
}

// stir starts the lane's worker, or lets it look whether it is still needed. The caller holds mu.
func (r *resolver) stir(l *lane) {
	if !l.running {
		l.running = true
		r.group.Go(func() { r.work(l) })
		return
	}
	select {
	case l.awake <- struct{}{}:
	default:
	}
}

// work deals with a lane's events, each when it is due, until there are none or nothing is to be done about them.
func (r *resolver) work(l *lane) {
	for {
		r.mu.Lock()
		p, ok := r.policy(l.source)
		d, wait := l.next(r.gate.now())
		if !ok || len(l.cases) == 0 {
			l.running = false
			r.mu.Unlock()
			return
		}
		if d != nil {
			l.begin(d)
		}
		r.mu.Unlock()
		if d != nil {
			r.done(l, d, r.gate.resolve(r.ctx, d.key, p, false))
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.awake:
		case <-r.ctx.Done():
		}
		timer.Stop()
	}
}

// done notes what is left to do of an event.
func (r *resolver) done(l *lane, d *doubt, left remains) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.done(d, left, r.gate.now())
	r.wake(l)
}

// askNow puts the question because a delivery of the event has come, unless it was put just now. It waits for a
// question that is under way. Only an error of the store is one: an app that does not answer moves nothing.
func (r *resolver) askNow(ctx context.Context, key Key, p Policy) error {
	r.mu.Lock()
	l := r.lane(key.Source)
	now := r.gate.now()
	d := l.add(key, now.Add(firstGap))
	if busy := d.busy; busy != nil {
		r.mu.Unlock()
		_ = await(ctx, busy)
		return nil
	}
	if since := now.Sub(d.asked); since >= 0 && since < askPause { // negative: the clock was turned back
		r.mu.Unlock()
		return nil
	}
	l.begin(d)
	r.mu.Unlock()
	left := r.gate.resolve(ctx, key, p, true)
	r.done(l, d, left)
	return left.err
}

// stop ends the resolver and waits for it.
func (r *resolver) stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.group.Wait()
}
