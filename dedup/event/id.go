package event

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxID is the longest event id, in bytes. Real senders stay below 256; the limit bounds the store's keys.
const maxID = 512

// ValidID tells whether id can name an event: 1 to 512 bytes of valid UTF-8 without control characters and
// without white space at either end, which logs, headers and people lose. The error wraps [ErrInvalidID] and
// does not repeat the id.
func ValidID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidID)
	case len(id) > maxID:
		return fmt.Errorf("%w: it is longer than %d bytes", ErrInvalidID, maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: it is not valid UTF-8", ErrInvalidID)
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: it contains a control character", ErrInvalidID)
		}
	}
	first, _ := utf8.DecodeRuneInString(id)
	last, _ := utf8.DecodeLastRuneInString(id)
	if unicode.IsSpace(first) || unicode.IsSpace(last) {
		return fmt.Errorf("%w: it begins or ends with a space", ErrInvalidID)
	}
	return nil
}
