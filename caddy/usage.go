package caddy

import (
	"sync"
	"time"

	"github.com/einlass/einlass/dedup"
)

// probation is how long a config must have lasted before events are resolved by it, where another one does so already:
// Caddy starts apps in no order, and a config whose http app then fails must not have asked anybody.
const probation = time.Second

// usage is the time in which a store's events are resolved by a config.
type usage struct {
	shared *sharedStore

	mu    sync.Mutex
	timer *time.Timer
	stop  func() // set once it has begun
	ended bool
}

// use begins to resolve by these policies: at once for the first config, else after its probation.
func (s *sharedStore) use(policies map[string]dedup.Policy) *usage {
	u := &usage{shared: s}
	begin := func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.ended {
			u.stop = s.gate.Use(policies)
		}
	}
	if s.configs.Add(1) == 1 {
		begin()
		return u
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer = time.AfterFunc(probation, begin)
	return u
}

// end ends it, begun or not.
func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if u.timer != nil {
		u.timer.Stop()
	}
	if u.stop != nil {
		u.stop()
	}
	u.shared.configs.Add(-1)
}
