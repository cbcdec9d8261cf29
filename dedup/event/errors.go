package event

import "errors"

var (
	// ErrNotFound says that nothing stands where a selector points.
	ErrNotFound = errors.New("value not found")

	// ErrInvalidJSON says that bytes that must be JSON are not, by the strict rules of [Document.JSON].
	ErrInvalidJSON = errors.New("invalid JSON")

	// ErrAmbiguous says that a selector points at more than one value: a header or form field that is
	// repeated, headers of one meaning that differ, or a form that parsers read in different ways.
	ErrAmbiguous = errors.New("ambiguous value")

	// ErrNotScalar says that a selector points at an object, an array, a boolean or null. Only strings and
	// numbers name an event.
	ErrNotScalar = errors.New("value is not a string or a number")

	// ErrInvalidID says that a value cannot serve as an event id; see [ValidID].
	ErrInvalidID = errors.New("invalid event id")
)
