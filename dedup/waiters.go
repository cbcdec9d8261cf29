package dedup

import (
	"context"
	"sync"
	"time"
)

// flight is a delivery that is the attempt of its event in this process, or is about to become it.
type flight struct {
	decided   chan struct{} // closed once it is known whether the reservation has made it the attempt
	confirmed chan struct{} // closed once the event was decided in another way than by its owner
	settled   chan struct{} // closed once waiting for it is over: it has ended, or the event was decided in another way

	// Written before decided is closed, read after.
	running bool    // it became the attempt
	receipt Receipt // then: as reserved

	// Guarded by flights.mu.
	places   []place     // where it is registered
	accepted *time.Timer // the app has it and will confirm it: ends the flight at the lease's end
	ended    bool
}

// place is what a flight is found under: its event, and for a guarded source also its content, because two
// deliveries with different ids and the same content may be one event before either has a receipt.
type place struct {
	guard bool
	hash  [16]byte
}

// flights are the flights of this process. A flight is registered before its reservation is submitted and ends
// after its outcome is durable, so an event whose attempt runs here is always found: in the store's answer, here,
// or in both.
type flights struct {
	mu      sync.Mutex        // guards all below
	byPlace map[place]*flight // every flight that is waited for
	count   int               // of those that run, accepted ones not
	closed  bool
	idle    chan struct{} // closed while count is 0
}

func newFlights() *flights {
	idle := make(chan struct{})
	close(idle)
	return &flights{byPlace: map[place]*flight{}, idle: idle}
}

// begin registers a flight for the event, or returns the one that is there.
func (fs *flights) begin(id Identity) (own, other *flight) {
	places := []place{{hash: id.Hash()}}
	if id.Guard {
		places = append(places, place{guard: true, hash: GuardHash(id.Source, id.Digest)})
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, p := range places {
		if f := fs.byPlace[p]; f != nil {
			return nil, f
		}
	}
	f := &flight{decided: make(chan struct{}), confirmed: make(chan struct{}), settled: make(chan struct{}), places: places}
	for _, p := range places {
		fs.byPlace[p] = f
	}
	if fs.count == 0 {
		fs.idle = make(chan struct{})
	}
	fs.count++
	return f, nil
}

// join registers a flight for one more event, the one it turned out to be, or returns the flight that is there.
func (fs *flights) join(f *flight, key Key) (other *flight) {
	p := place{hash: key.Hash()}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if other := fs.byPlace[p]; other != nil && other != f {
		return other
	}
	fs.byPlace[p] = f
	f.places = append(f.places, p)
	return nil
}

// start says that the flight has become the attempt.
func (f *flight) start(r Receipt) {
	f.running, f.receipt = true, r
	close(f.decided)
}

// attempting tells whether the flight has become the attempt.
func (f *flight) attempting() bool {
	select {
	case <-f.decided:
		return f.running
	default:
		return false
	}
}

// over tells whether waiting for the flight is over.
func (f *flight) over() bool {
	select {
	case <-f.settled:
		return true
	default:
		return false
	}
}

// end takes the flight away and wakes who waits for it; once, further calls do nothing.
func (fs *flights) end(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.endLocked(f)
}

func (fs *flights) endLocked(f *flight) {
	if f.ended {
		return
	}
	f.ended = true
	fs.detach(f)
	if f.accepted != nil {
		f.accepted.Stop()
	} else {
		fs.leave()
	}
	if !f.running {
		close(f.decided)
	}
	f.settle()
}

// detach gives up the flight's places. It goes on being counted.
func (fs *flights) detach(f *flight) {
	for _, p := range f.places {
		if fs.byPlace[p] == f {
			delete(fs.byPlace, p)
		}
	}
}

// leave counts one running flight less.
func (fs *flights) leave() {
	fs.count--
	if fs.count == 0 {
		close(fs.idle)
	}
}

func (f *flight) settle() {
	if !f.over() {
		close(f.settled)
	}
}

// accept turns a running flight into one that nobody has to wait for at the end of the process: the app has the event
// and will say what became of it. It ends when it has, or with the lease; then, expired is called.
func (fs *flights) accept(f *flight, lease time.Duration, expired func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.over() || fs.closed { // confirmed already
		fs.endLocked(f)
		return
	}
	f.accepted = time.AfterFunc(lease, func() {
		fs.end(f)
		expired()
	})
	fs.leave()
}

// wake wakes who waits for the event's flight, if there is one that r, written by somebody else, decides: r is final,
// also while that flight's reservation is under way, or r is open because its own attempt was said to be aborted. What
// an earlier attempt's abort has freed may be reserved anew by now, and is not decided by it.
func (fs *flights) wake(r Receipt) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.byPlace[place{hash: r.Hash()}]
	if f == nil || f.over() {
		return
	}
	if freed := r.State == StateOpen && f.attempting() && f.receipt.Attempt == r.Attempt; !freed && !r.State.Final() {
		return
	}
	close(f.confirmed)
	f.settle()
	fs.detach(f) // its event may be free: nobody has to wait until the app's answer is through
	if f.accepted != nil {
		fs.endLocked(f)
	}
}

// close ends what was accepted; nothing comes after it.
func (fs *flights) close() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.closed = true
	for _, f := range fs.byPlace {
		if f.accepted != nil {
			fs.endLocked(f)
		}
	}
}

// ofAccepted is the flight of an event, or nil, and tells whether nothing of it runs here any more: the app has it.
func (fs *flights) ofAccepted(key Key) (f *flight, accepted bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.byPlace[place{hash: key.Hash()}]
	return f, f != nil && f.accepted != nil
}

func (fs *flights) len() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.count
}

// drain waits until there is a moment without flights.
func (fs *flights) drain(ctx context.Context) error {
	fs.mu.Lock()
	idle := fs.idle
	fs.mu.Unlock()
	return await(ctx, idle)
}

// await waits for done, or for the end of ctx, and says which came first; done, if both have come.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	default:
		return ctx.Err()
	}
}
