package dedup

import (
	"context"
	"iter"
)

// Store keeps receipts. It knows nothing of the protocol but [Step]. Package deduptest holds the suite that every
// implementation passes.
//
// All methods may be called from any number of goroutines. What they return shares no memory with the store.
type Store interface {
	// Lookup reads the receipt of an event; false where there is none. With id.Guard it also finds the event that
	// first came with the same source and digest, if the id is unknown. It never waits for other events' writes,
	// and what it returns is durable. Errors: ErrUnavailable, ErrCorrupt, ErrNewerFormat, ErrClosed, and ctx's.
	Lookup(ctx context.Context, id Identity) (Receipt, bool, error)

	// Apply loads the receipt (as Lookup does, guard included), calls Step, and saves, as one atomic and durable
	// transition: it is on disk when Apply returns nil. A Reserve with Guard also records that (source, digest) is
	// this event, unless it is recorded already.
	//
	// With an error of the rules' (ErrUnknownEvent, ErrUnknownAttempt, ErrAttemptClosed, ErrReceiptDiffers,
	// ErrNotAllowed) the result holds the receipt that stands. After one that is neither of these nor carries ErrNotWritten, the transition may have taken place or not. An implementation
	// gives up a transition when ctx ends only while it is certain that it was not written.
	Apply(ctx context.Context, t Transition) (Result, error)

	// Undecided gives every receipt that is not final, each as it was at some moment since the call, in no particular
	// order; the newest may not be durable yet. It holds up no write and ends soon after ctx does. After an error, which comes with the zero Receipt, it ends.
	Undecided(ctx context.Context) iter.Seq2[Receipt, error]

	// Seed is the store's secret. It is made with the store and never changes.
	Seed() Seed

	// Stats counts what the store has done and holds. It is cheap and reads no record.
	Stats() Stats

	// Close finishes what was submitted and releases the store. Later calls of the others return ErrClosed.
	Close() error
}

// Stats counts what a store has done since it was opened, and the receipts it holds.
type Stats struct {
	Transitions uint64         // steps asked for, those that wrote nothing included
	Groups      uint64         // groups of steps run as one transaction
	Commits     uint64         // of these, those that wrote
	Syncs       uint64         // flushes to disk these commits took, growing of the file not counted
	Receipts    [States]uint64 // receipts by state
	Failing     error          // what the newest write failed with; nil once one has succeeded
}
