package bolt

import (
	"fmt"

	"github.com/einlass/einlass/dedup"
)

// leastRoom is what the disk must have free before new events are reserved again after it was full. On a nearly
// full disk a reservation may still fit where the answer to it, a moment later, does not; every event forwarded
// then would be in doubt.
const leastRoom = 4 << 20

// roomToReserve returns why no new event may be reserved now, or nil. It looks at the disk only after a write has
// failed for lack of room, and until there is some again.
func (s *Store) roomToReserve() error {
	if !s.full.Load() {
		return nil
	}
	ask := free
	if s.hooks.free != nil {
		ask = s.hooks.free
	}
	room, known := ask(s.path)
	if known && room < leastRoom {
		return fmt.Errorf("%w: the disk of %s was full and has %d bytes left, %d are wanted before new events are let in",
			dedup.ErrUnavailable, s.path, room, leastRoom)
	}
	s.full.Store(false)
	return nil
}
