package dedup

import "errors"

// What a store reports. All of them mean that nothing may be forwarded now: an event whose receipt cannot be
// read is not an unknown event.
var (
	// ErrUnavailable is returned while the store cannot read or write: disk full, queue full, or the handle given
	// up after a failed flush. Trying again later may succeed.
	ErrUnavailable = errors.New("store unavailable")

	// ErrNotWritten says, beside another error, that the transition has certainly not taken place. An error of
	// [Store.Apply] without it means that nobody knows.
	ErrNotWritten = errors.New("transition not written")

	// ErrClosed is returned once the store is closed.
	ErrClosed = errors.New("store closed")

	// ErrCorrupt is returned for a record or a file that is damaged. Nobody may take it for an absent one.
	ErrCorrupt = errors.New("store damaged")

	// ErrLocked is returned when another process has the store open.
	ErrLocked = errors.New("store in use")

	// ErrNewerFormat is returned for a store or a record that a newer version has written.
	ErrNewerFormat = errors.New("store written by a newer version")
)

// ErrUnreachable is returned by an [Asker] whose app gave no answer at all. The other questions of the source wait
// then, too.
var ErrUnreachable = errors.New("the app cannot be reached")

// What the rules refuse. The receipt is unchanged, and certainly so.
var (
	// ErrUnknownEvent is returned when an outcome is reported of an event that has no receipt.
	ErrUnknownEvent = errors.New("unknown event")

	// ErrUnknownAttempt is returned when an outcome is reported of an attempt that was never reserved, or by a token
	// that is none of the event's.
	ErrUnknownAttempt = errors.New("unknown attempt")

	// ErrAttemptClosed is returned when an outcome is reported of an attempt that was closed for good (T5).
	ErrAttemptClosed = errors.New("attempt closed")

	// ErrReceiptDiffers is returned when an attempt confirms something else than what is stored: two receipts prove
	// two effects. The first one stands.
	ErrReceiptDiffers = errors.New("receipt differs")

	// ErrNotAllowed is returned for a transition that does not exist from the receipt's state.
	ErrNotAllowed = errors.New("transition not allowed")

	// ErrEnded is returned by [Attempt.Commit] and [Attempt.Reject] when the attempt has ended before, without
	// an answer.
	ErrEnded = errors.New("attempt has ended")
)

// notWritten is an error that certainly left the store as it was.
type notWritten struct{ error }

func (e notWritten) Unwrap() []error { return []error{e.error, ErrNotWritten} }

// NotWritten marks an error with [ErrNotWritten], for implementations of [Store].
func NotWritten(err error) error { return notWritten{err} }
