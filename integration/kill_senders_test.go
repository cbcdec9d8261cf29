package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/proc"
)

// senders send events, each again and again until it is answered for good.
type senders struct {
	t       testing.TB
	url     string
	seed    uint64
	client  *http.Client
	abandon chan struct{} // closed if it is not worth while any more
	running sync.WaitGroup
	open    chan struct{} // one place an event that is not answered

	mu     sync.Mutex // guards all below
	events []*sent
	faults []string
}

// sent is an event with what its sender has got.
type sent struct {
	event
	amount int // 0: the app refuses it for good

	mu     sync.Mutex
	answer *answer // for good, the first time
	torn   int     // answers for good that broke off
	tries  int
}

const (
	freshSenders = 4
	mostOpen     = 96
)

func newSenders(t testing.TB, url string, seed uint64) *senders {
	return &senders{
		t: t, url: url, seed: seed, abandon: make(chan struct{}), open: make(chan struct{}, mostOpen),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
	}
}

// start lets new events come until stop is closed.
func (s *senders) start(stop <-chan struct{}) {
	for n := range freshSenders {
		s.running.Go(func() {
			rng := rand.New(rand.NewPCG(s.seed, uint64(n)))
			for i := 0; s.pause(stop, rng, 10, 50); i++ {
				select {
				case s.open <- struct{}{}:
				case <-stop:
					return
				}
				e := newSent(fmt.Sprintf("%d-%d", n, i), rng)
				s.mu.Lock()
				s.events = append(s.events, e)
				s.mu.Unlock()
				// An event that is in doubt is left to itself, and the next one comes.
				parked := make(chan struct{})
				own := rand.New(rand.NewPCG(rng.Uint64(), 0))
				s.running.Go(func() {
					defer func() { <-s.open }()
					s.deliver(e, own, parked)
				})
				<-parked
			}
		})
	}
}

func newSent(id string, rng *rand.Rand) *sent {
	e := &sent{amount: 1 + rng.IntN(100)}
	if rng.IntN(6) == 0 {
		e.amount = 0
	}
	e.event = push(id, fmt.Sprintf(`{"id":%q,"amount":%d}`, id, e.amount))
	return e
}

// pause is between two tries; false when it is all over.
func (s *senders) pause(stop <-chan struct{}, rng *rand.Rand, least, most int) bool {
	timer := time.NewTimer(time.Duration(least+rng.IntN(most-least)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	case <-s.abandon:
		return false
	}
}

// deliver sends one event until it is answered for good, some twice at a time, and some once more after that.
func (s *senders) deliver(e *sent, rng *rand.Rand, parked chan struct{}) {
	park := sync.OnceFunc(func() { close(parked) })
	defer park()
	var done atomic.Bool
	try := func() {
		code, final := s.try(e)
		if final {
			done.Store(true)
		} else if code == "in_doubt" || code == "in_progress" {
			park()
		}
	}
	twice, more := rng.IntN(4) == 0, rng.IntN(4) == 0
	for {
		if twice {
			var both sync.WaitGroup
			both.Go(try)
			both.Go(try)
			both.Wait()
		} else {
			try()
		}
		if done.Load() {
			if !more {
				return
			}
			more = false
			done.Store(false)
		}
		if !s.pause(nil, rng, 150, 300) {
			return
		}
	}
}

// try sends an event once and tells whether it is answered for good.
func (s *senders) try(e *sent) (code string, final bool) {
	a, err := s.send(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tries++
	switch {
	case err != nil:
		if a.Status == http.StatusOK {
			e.torn++
		}
		return "", false
	case a.Status == http.StatusServiceUnavailable:
		return a.Code, false
	case a.Code != "":
		s.fault("event %s got %d %s", e.id, a.Status, a.Code)
		return a.Code, false
	case e.amount > 0 && a.Status != http.StatusOK, e.amount == 0 && a.Status != http.StatusUnprocessableEntity:
		s.fault("event %s of %d got %d %q", e.id, e.amount, a.Status, a.Body)
	case e.answer == nil:
		e.answer = &a
	case e.answer.Status != a.Status || e.answer.Body != a.Body:
		s.fault("event %s was answered %d %q, then %d %q", e.id, e.answer.Status, e.answer.Body, a.Status, a.Body)
	case !a.Duplicate && !e.answer.Duplicate:
		s.fault("event %s was twice given its answer as a first one", e.id)
	}
	return "", true
}

// send gives the status also if the body breaks off.
func (s *senders) send(e *sent) (answer, error) {
	req := signed(s.t, context.Background(), s.url, e.event)
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return read(resp)
}

func (s *senders) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *senders) wait() { s.running.Wait() }

// finish waits until every event is answered.
func (s *senders) finish() {
	timer := time.AfterFunc(proc.Patience, func() { close(s.abandon) })
	s.wait()
	timer.Stop()
}

// repeat sends every event once more and wants what it was answered, as a repeat.
func (s *senders) repeat() {
	todo := make(chan *sent)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for e := range todo {
				a, err := s.send(e)
				if err != nil || a.Status != e.answer.Status || a.Body != e.answer.Body || !a.Duplicate {
					s.fault("event %s was answered %d %q; its repeat got %d %s %q duplicate=%v, %v",
						e.id, e.answer.Status, e.answer.Body, a.Status, a.Code, a.Body, a.Duplicate, err)
				}
			}
		})
	}
	for _, e := range s.events {
		if e.answer != nil {
			todo <- e
		}
	}
	close(todo)
	workers.Wait()
}

// read reads an answer; with an error, its status at least.
func read(resp *http.Response) (answer, error) {
	body, err := io.ReadAll(resp.Body)
	a := answer{Status: resp.StatusCode, Body: string(body), Header: resp.Header, Duplicate: resp.Header.Get("Webhook-Gate-Receipt") == "duplicate"}
	if err != nil {
		return a, err
	}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		var problem struct{ Code string }
		err = json.Unmarshal(body, &problem)
		a.Code = problem.Code
	}
	return a, err
}
