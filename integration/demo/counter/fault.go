package counter

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// The faults that can be armed.
const (
	// FailBeforeCommit answers 500 and changes nothing.
	FailBeforeCommit = "fail_before_commit"
	// DropAfterCommit commits, then closes the connection without an answer.
	DropAfterCommit = "drop_after_commit"
	// Slow waits before the commit.
	Slow = "slow_ms"
)

// maxSlow bounds what Slow may ask for.
const maxSlow = time.Minute

// Fault is what goes wrong with one request that carries an event.
type Fault struct {
	// EventID is the event whose next request is struck.
	EventID string `json:"event_id"`
	// Fault is one of the names above.
	Fault string `json:"fault"`
	// SlowMS is how long to wait, in milliseconds; for Slow only.
	SlowMS int64 `json:"slow_ms,omitempty"`
}

func (f Fault) check() error {
	switch {
	case f.EventID == "":
		return errors.New("event_id is missing")
	case f.Fault == Slow:
		if f.SlowMS <= 0 || f.delay() > maxSlow {
			return fmt.Errorf("slow_ms must be between 1 and %d", maxSlow.Milliseconds())
		}
	case f.Fault != FailBeforeCommit && f.Fault != DropAfterCommit:
		return fmt.Errorf("fault must be %s, %s or %s", FailBeforeCommit, DropAfterCommit, Slow)
	}
	return nil
}

func (f Fault) delay() time.Duration { return time.Duration(f.SlowMS) * time.Millisecond }

// faults are the armed ones. Each strikes once; several of one event strike one after the other.
type faults struct {
	mu    sync.Mutex
	armed map[string][]Fault // guarded by mu
}

func (f *faults) arm(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.armed == nil {
		f.armed = make(map[string][]Fault)
	}
	f.armed[fault.EventID] = append(f.armed[fault.EventID], fault)
}

// take gives the fault that strikes now; the zero Fault is none.
func (f *faults) take(eventID string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue := f.armed[eventID]
	if len(queue) == 0 {
		return Fault{}
	}
	if len(queue) == 1 {
		delete(f.armed, eventID)
	} else {
		f.armed[eventID] = queue[1:]
	}
	return queue[0]
}
