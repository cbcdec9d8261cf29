package verifier

import "fmt"

// Reason is the kind of a refusal: a closed set, fit for a metric label.
type Reason string

// All reasons for which a delivery is refused.
const (
	// ReasonMissingHeader: a header the scheme needs is absent or empty.
	ReasonMissingHeader Reason = "missing_header"
	// ReasonRepeatedHeader: a header that must be single came more than once.
	// Which of them a later reader would take is unknowable, so none is.
	ReasonRepeatedHeader Reason = "repeated_header"
	// ReasonMalformedHeader: a header is there but not in the scheme's form.
	ReasonMalformedHeader Reason = "malformed_header"
	// ReasonStale: the signed time is too long ago.
	ReasonStale Reason = "stale"
	// ReasonFuture: the signed time is too far ahead.
	ReasonFuture Reason = "future"
	// ReasonMismatch: no signature matches any active secret.
	ReasonMismatch Reason = "mismatch"
	// ReasonNoActiveSecret: every configured secret has expired.
	ReasonNoActiveSecret Reason = "no_active_secret"
)

// Error is a refusal.
type Error struct {
	Reason Reason
	// Detail is for the operator and never for the sender. It never holds
	// secret, signature or body bytes; stale and future say by how much.
	Detail string
}

// Error gives the reason and the detail.
func (e *Error) Error() string {
	if e.Detail == "" {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.Detail
}

// refuse builds a refusal. It returns the interface, so that no caller can turn
// a nil *Error into a non-nil error.
func refuse(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
