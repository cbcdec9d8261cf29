package model

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/einlass/einlass/dedup"
)

// Attempts are counted 1, 2, ... here, whatever their real numbers are.
const (
	maxGates    = 2
	maxCopies   = 5
	maxAttempts = 4
)

// Short names.
const (
	absent    = uint8(dedup.StateAbsent)
	reserved  = uint8(dedup.StateReserved)
	open      = uint8(dedup.StateOpen)
	committed = uint8(dedup.StateCommitted)
	rejected  = uint8(dedup.StateRejected)
	held      = uint8(dedup.StateHeld)
)

// Receipts: 1 and 2 are those of the app's first and second effect.
const refusal = 3

// state is the whole world. It holds bytes only, so that it is its own key (packed).
type state struct {
	store, backup record
	procs         [maxGates]process
	left          [2]uint8 // deliveries the sender still has: of the event, and with other bytes

	// The network and the app's memory.
	copies    [maxCopies]forward
	callbacks [maxAttempts]uint8 // confirmations on their way, a bit for each outcome

	// The app's database.
	effects, row, fence, tokens uint8

	// What the world remembers although nobody in it does.
	issued uint8 // the newest attempt ever made
	lasted uint8 // attempts whose reservation was durable at some time, a bit each
	live   uint8 // the attempt whose lease runs
	told   uint8 // the receipt the sender was told

	gateKills, appKills, losses, doubles, restores, failures, saved uint8
}

// The app's row.
const (
	rowCommitted = 1
	rowRejected  = 2
)

// process is what one gate process knows. All of it is gone when it is killed.
type process struct {
	dead     uint8               // for good
	running  uint8               // the attempt that deliveries of the event meet here
	flights  [maxAttempts]flight // that one, and those whose owner has yet to see that they were decided otherwise
	admitted [2]uint8            // handlers whose look-up has let them reserve, by their bytes
	seen     uint8               // staleReserve only: what such a handler has read, a state
	waiting  uint8               // handlers that wait for the attempt's end
	tracked  uint8               // the resolver has the event
	asked    uint8               // the attempt a question was put about; 0: none is under way
	reply    uint8               // what the app has said to it; 0: nothing yet
}

// flight is an attempt that runs in a process.
type flight struct {
	at     uint8
	digest uint8 // of its bytes, as in record
	answer uint8 // what has come back of it
}

// Flights.
const (
	idle     = iota
	ready    // reserved, nothing sent
	sent     // the app may have it
	settling // it failed, its owner asks what became of it; the reply is in answer
	accepted // the app has it and will confirm
	overdue  // its time was over and it was left; the app's answer may still come
)

// forward is one copy of an attempt.
type forward struct{ attempt, at uint8 }

// Where a copy is, or what it has come to and is about to say.
const (
	nowhere = iota
	onTheWay
	running
	saysDone1
	saysDone2
	saysRejected
	saysAborted
	saysFailed // 5xx, no verdict
	saysAccepted
	saysPending
)

// Replies to the outcome question.
const (
	repliesDone1 = iota + 1
	repliesDone2
	repliesRejected
	repliesAbsent
	repliesFenced
	repliesPending
	holds // in a reply's place, where the policy is to hold
)

// bit is an attempt's place in a set of attempts.
func bit(attempt uint8) uint8 { return 1 << (attempt - 1) }

// packed is a state in half the room: no byte of it is above 15.
type packed [words]uint32

const (
	words = (unsafe.Sizeof(state{}) + 7) / 8
	nibs  = 0x0f0f0f0f0f0f0f0f
)

// padded is a state in whole words.
type padded [8 * words]uint8

func (s *state) pack() (k packed) {
	var raw padded
	copy(raw[:], (*[unsafe.Sizeof(*s)]uint8)(unsafe.Pointer(s))[:]) // a state holds bytes only
	for i := range k {
		x := binary.LittleEndian.Uint64(raw[8*i:])
		if x&^nibs != 0 {
			panic("a value that does not fit into four bits")
		}
		x = (x | x>>4) & 0x00ff00ff00ff00ff
		x = (x | x>>8) & 0x0000ffff0000ffff
		k[i] = uint32(x | x>>16)
	}
	return k
}

func (k *packed) unpack() (s state) {
	var raw padded
	for i, half := range k {
		x := uint64(half)
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		x = (x | x<<4) & nibs
		binary.LittleEndian.PutUint64(raw[8*i:], x)
	}
	copy((*[unsafe.Sizeof(s)]uint8)(unsafe.Pointer(&s))[:], raw[:])
	return s
}

// canonical makes states that differ in nothing equal.
func (m *model) canonical(s *state) {
	for i := 1; i < maxCopies; i++ {
		for j := i; j > 0 && s.copies[j-1].less(s.copies[j]); j-- {
			s.copies[j-1], s.copies[j] = s.copies[j], s.copies[j-1]
		}
	}
	for p := range m.gates {
		pr := &s.procs[p]
		if pr.tracked != 0 && !m.toResolve(s, pr) {
			pr.tracked = 0
		}
		for i, f := range pr.flights {
			if f.at == overdue && !s.mayBeLate(f, uint8(i+1)) {
				pr.flights[i] = flight{}
			}
		}
	}
	if m.gates == 2 {
		if a, b := s.procs[0].key(), s.procs[1].key(); bytes.Compare(a[:], b[:]) < 0 {
			s.procs[0], s.procs[1] = s.procs[1], s.procs[0]
		}
	}
}

// mayBeLate tells whether there is something to hear yet of an attempt that was left.
func (s *state) mayBeLate(f flight, attempt uint8) bool {
	switch f.answer {
	case saysDone1, saysDone2, saysRejected:
		return true
	case nowhere:
		for _, c := range s.copies {
			if c.attempt == attempt {
				return true
			}
		}
	}
	return false
}

func (f forward) less(g forward) bool {
	return f.at < g.at || f.at == g.at && f.attempt < g.attempt
}

// key orders processes.
func (p *process) key() (k [32]byte) {
	b := append(k[:0], p.dead, p.running, p.admitted[0], p.admitted[1], p.seen, p.waiting, p.tracked, p.asked, p.reply)
	for _, f := range p.flights {
		b = append(b, f.at, f.digest, f.answer)
	}
	return k
}

// add puts a copy of an attempt on its way.
func (s *state) add(attempt uint8) {
	for i := range s.copies {
		if s.copies[i].at == nowhere {
			s.copies[i] = forward{attempt, onTheWay}
			return
		}
	}
	panic("more copies than there is room for")
}

// alive tells whether a process runs.
func (p *process) alive() bool { return p.dead == 0 }

// question is the newest attempt about which a question is on its way to the app.
func (p *process) question() (newest uint8) {
	if p.asked != 0 && p.reply == 0 {
		newest = p.asked
	}
	for i, f := range p.flights {
		if f.at == settling && f.answer == 0 {
			newest = max(newest, uint8(i+1))
		}
	}
	return newest
}
