package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how many arrays and objects may stand in each other. Real events stay below 20; parsers behind
// the gate begin to fail, or to crash, from about 1000 on.
const maxDepth = 512

// invalid makes the error for a body that is refused at byte offset, counted from 0. Reasons are ours:
// those of parsers quote the body.
func invalid(reason string, offset int) error {
	return fmt.Errorf("%w: %s at byte %d", ErrInvalidJSON, reason, offset)
}

// checkStrict checks that body is one JSON value by the rules of [Document.JSON].
func checkStrict(body []byte) error {
	if err := checkSyntax(body); err != nil {
		return err
	}
	c := shapeChecker{body: body}
	_, err := c.value(skipSpace(body, 0), 0)
	return err
}

// checkSyntax checks everything but depth and names, with the fast path of jsontext: valid UTF-8, RFC 8259
// grammar, no lone surrogate (RFC 7493, section 2.1), nothing behind the value.
func checkSyntax(body []byte) error {
	// Names are left to shapeChecker, whose comparison is the stricter one.
	if jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil
	}
	return explainSyntax(body)
}

// explainSyntax finds the reason why body is not JSON.
func explainSyntax(body []byte) error {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return fmt.Errorf("%w: the body is empty", ErrInvalidJSON)
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return fmt.Errorf("%w: the body begins with a byte order mark", ErrInvalidJSON)
	}
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return invalid("not valid UTF-8", i)
		}
		i += size
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadValue(); err != nil {
		return explainDecoder(body, err)
	}
	return invalid("something follows the JSON value", skipSpace(body, int(dec.InputOffset())))
}

func explainDecoder(body []byte, err error) error {
	offset := len(body)
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = min(int(syntax.ByteOffset), len(body))
	}
	switch rest := body[offset:]; {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the body ends too early", len(body))
	case isSurrogateEscape(rest):
		return invalid("a lone surrogate", offset)
	default:
		return invalid("a syntax error", offset)
	}
}

// isSurrogateEscape tells whether b begins with one of the escapes \ud800 to \udfff.
func isSurrogateEscape(b []byte) bool {
	if len(b) < 4 || b[0] != '\\' || b[1] != 'u' || b[2]|0x20 != 'd' {
		return false
	}
	return b[3] == '8' || b[3] == '9' || 'a' <= b[3]|0x20 && b[3]|0x20 <= 'f'
}

// shapeChecker walks a valid JSON value and refuses what parsers read differently though it is JSON: names
// that repeat, also by case folding, and great depth.
type shapeChecker struct {
	body  []byte
	names nameSets
}

// value checks the value at i, which depth containers surround, and gives the place after it.
func (c *shapeChecker) value(i, depth int) (int, error) {
	switch c.body[i] {
	case '{', '[':
		if depth == maxDepth {
			return 0, invalid(fmt.Sprintf("more than %d levels of nesting", maxDepth), i)
		}
		return c.container(i, depth)
	case '"':
		return skipString(c.body, i), nil
	}
	return skipPlain(c.body, i), nil
}

func (c *shapeChecker) container(i, depth int) (int, error) {
	object := c.body[i] == '{'
	if object {
		c.names.push()
		defer c.names.pop()
	}
	at, ok := next(c.body, i+1, object)
	for ok {
		if object && !c.names.add(at.name) {
			return 0, invalid("a name that stands twice in its object, letter case aside,", at.start)
		}
		end, err := c.value(at.value, depth+1)
		if err != nil {
			return 0, err
		}
		at, ok = next(c.body, end, object)
	}
	return at.start + 1, nil
}
