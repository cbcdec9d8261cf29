package event

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// ContractError says which rule of a contract an event breaks, and where, never by which value.
type ContractError struct {
	Pointer string // JSON pointer to the place in the body; "" is the body itself
	Keyword string // the schema's keyword, as `required`, `type`, `maximum`
}

// maxPointerText is how much of a pointer an error shows, in bytes: its names come from the body.
const maxPointerText = 200

func (e *ContractError) Error() string {
	place := "the body"
	switch {
	case len(e.Pointer) > maxPointerText:
		place = fmt.Sprintf("%q...", e.Pointer[:maxPointerText])
	case e.Pointer != "":
		place = fmt.Sprintf("%q", e.Pointer)
	}
	return fmt.Sprintf("contract: %s at %s", e.Keyword, place)
}

// firstViolation picks one of the violations, always the same of the same set: the validator finds members in
// no order.
func firstViolation(err *jsonschema.ValidationError) *ContractError {
	found := violations(err, nil)
	return slices.MinFunc(found, func(a, b *ContractError) int {
		if byPlace := strings.Compare(a.Pointer, b.Pointer); byPlace != 0 {
			return byPlace
		}
		return strings.Compare(a.Keyword, b.Keyword)
	})
}

// violations collects the keywords that failed. It goes into what only groups others, and not into the
// branches of `anyOf`, `oneOf` and their like: which of those was meant is not known.
func violations(err *jsonschema.ValidationError, found []*ContractError) []*ContractError {
	switch err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range err.Causes {
			found = violations(cause, found)
		}
		if len(err.Causes) > 0 {
			return found
		}
	}
	return append(found, &ContractError{
		Pointer: pointer(err.InstanceLocation).String(),
		Keyword: keyword(err),
	})
}

// keyword names the keyword that failed.
func keyword(err *jsonschema.ValidationError) string {
	switch err.ErrorKind.(type) {
	case *kind.Not:
		return "not"
	case *kind.FalseSchema:
		// `unevaluatedProperties: false` and the like: the schema's own place names the keyword.
		switch last := path.Base(err.SchemaURL); last {
		case "unevaluatedProperties", "unevaluatedItems", "additionalItems", "items", "contains", "then", "else":
			return last
		}
		return "false"
	}
	if words := err.ErrorKind.KeywordPath(); len(words) > 0 {
		return words[0]
	}
	return "schema"
}
