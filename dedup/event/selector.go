package event

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
)

type selectorKind uint8

const (
	inNothing selectorKind = iota
	inHeader
	inJSON
	inForm
	inDigest
)

const selectorForms = "write `header NAME [NAME...]`, `json /pointer`, `form FIELD [/pointer]` or `digest`"

// Selector says where in a delivery a value stands. Its text form is that of the Caddyfile:
//
//	header NAME [NAME...]     the header's value; of several names the first that is present
//	json /pointer             the value at a JSON pointer (RFC 6901) of the body
//	form FIELD [/pointer]     a field of an urlencoded body, or a value in the JSON that the field holds
//	digest                    the body's SHA-256 in lower-case hex
//
// The zero Selector points nowhere.
type Selector struct {
	kind    selectorKind
	headers []string // canonical names
	field   string
	pointer pointer
}

// HeaderNames are the canonical names of the headers a value may stand in; nil
// where it stands in the body.
func (s Selector) HeaderNames() []string { return slices.Clone(s.headers) }

// ParseSelector reads the text form. Its errors say what to write instead.
func ParseSelector(text string) (Selector, error) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch kind {
	case "header":
		return parseHeaderSelector(rest)
	case "json":
		p, err := parsePointer(rest)
		if err != nil {
			return Selector{}, fmt.Errorf("`json`: %w", err)
		}
		return Selector{kind: inJSON, pointer: p}, nil
	case "form":
		return parseFormSelector(rest)
	case "digest":
		if rest != "" {
			return Selector{}, errors.New("`digest` takes no argument: it is always the SHA-256 of the body")
		}
		return Selector{kind: inDigest}, nil
	case "":
		return Selector{}, errors.New("nothing says where the value stands: " + selectorForms)
	}
	if strings.HasPrefix(kind, "/") {
		return Selector{}, fmt.Errorf("%q is a JSON pointer without its kind: write `json %s`", kind, kind)
	}
	return Selector{}, fmt.Errorf("%q is not a place where a value stands: %s", kind, selectorForms)
}

func parseHeaderSelector(rest string) (Selector, error) {
	names := strings.Fields(rest)
	if len(names) == 0 {
		return Selector{}, errors.New("`header` lacks a name: write for example `header X-Event-Id`")
	}
	for i, name := range names {
		if strings.ContainsAny(name, ",;:\"") || !isToken(name) {
			return Selector{}, fmt.Errorf("%q is not a header name: write names with spaces between, without colons, commas or quotes", name)
		}
		names[i] = textproto.CanonicalMIMEHeaderKey(name)
	}
	return Selector{kind: inHeader, headers: names}, nil
}

// isToken tells whether name is a field name by RFC 9110, section 5.6.2.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return name != ""
}

func parseFormSelector(rest string) (Selector, error) {
	field, at, _ := strings.Cut(rest, " ")
	at = strings.TrimSpace(at)
	if field == "" {
		return Selector{}, errors.New("`form` lacks a field: write for example `form payload /id`")
	}
	if strings.HasPrefix(field, "/") {
		return Selector{}, fmt.Errorf("`form` lacks a field before the pointer %q: write for example `form payload %s`", field, field)
	}
	s := Selector{kind: inForm, field: field}
	if at == "" {
		return s, nil
	}
	p, err := parsePointer(at)
	if err != nil {
		return Selector{}, fmt.Errorf("`form %s`: %w", field, err)
	}
	s.pointer = p
	return s, nil
}

// String gives the text form; [ParseSelector] reads it back. The zero Selector is "".
func (s Selector) String() string {
	switch s.kind {
	case inHeader:
		return "header " + strings.Join(s.headers, " ")
	case inJSON:
		return "json " + s.pointer.String()
	case inForm:
		if s.pointer == nil {
			return "form " + s.field
		}
		return "form " + s.field + " " + s.pointer.String()
	case inDigest:
		return "digest"
	}
	return ""
}

// IsZero tells whether the selector points nowhere.
func (s Selector) IsZero() bool { return s.kind == inNothing }

// NeedsJSON tells whether the selector reads the body as JSON. A form's field that holds JSON does not count:
// its body is a form.
func (s Selector) NeedsJSON() bool { return s.kind == inJSON }
