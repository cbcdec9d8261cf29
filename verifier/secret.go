package verifier

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// redacted is all that a Secret ever prints.
const redacted = "REDACTED"

// ErrEmptySecret is returned by NewSecret for an empty or blank value, which is
// what an unset variable or an empty file gives.
var ErrEmptySecret = errors.New("the secret is empty or blank")

// Secret is a shared secret that cannot print itself. The zero value is an
// empty secret, which every family refuses.
type Secret struct {
	// The text sits behind a closure: fmt prints the unexported fields of an
	// enclosing struct by reflection, past all methods below, and would show
	// a plain string.
	reveal func() string
	until  time.Time
}

// NewSecret makes a secret of text, as pasted or as read from a file: one
// trailing newline (\n or \r\n) is removed and nothing else. Empty or blank
// text is refused. From until on the secret is no longer accepted; zero = no end.
func NewSecret(text string, until time.Time) (Secret, error) {
	if trimmed, ok := strings.CutSuffix(text, "\n"); ok {
		text = strings.TrimSuffix(trimmed, "\r")
	}
	if strings.TrimSpace(text) == "" {
		return Secret{}, ErrEmptySecret
	}
	return Secret{reveal: func() string { return text }, until: until}, nil
}

// Reveal returns the secret's text. Only a family that makes key bytes of it
// has a reason to call this.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Until is when the secret ends; zero = no end.
func (s Secret) Until() time.Time { return s.until }

// Active reports whether the secret is accepted at now: until must be after it.
func (s Secret) Active(now time.Time) bool {
	return s.until.IsZero() || s.until.After(now)
}

// Equal reports whether both hold the same text, in constant time; the ends are
// not compared.
func (s Secret) Equal(other Secret) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String gives "REDACTED".
func (Secret) String() string { return redacted }

// GoString gives "REDACTED".
func (Secret) GoString() string { return redacted }

// Format gives "REDACTED" for every verb and flag.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText gives "REDACTED".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON gives "REDACTED" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue gives "REDACTED" to log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
