package event

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// pointer is a JSON pointer (RFC 6901) as its unescaped reference tokens.
type pointer []string

var (
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
)

// parsePointer reads a pointer to something inside a document. The empty pointer, the document itself, is
// never what a setting means.
func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, errors.New("a JSON pointer is missing: write for example `/id`")
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("JSON pointer %q does not begin with a slash: write `/%s`", text, strings.ReplaceAll(text, ".", "/"))
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		if at := badEscape(token); at >= 0 {
			return nil, fmt.Errorf("JSON pointer %q has a `~` that is not `~0` or `~1`: write `~0` for a tilde, `~1` for a slash", text)
		}
		tokens[i] = unescapeToken.Replace(token)
	}
	return tokens, nil
}

// badEscape gives the place of the first tilde that no escape begins with (RFC 6901, section 3), or -1.
func badEscape(token string) int {
	for i := 0; i < len(token); i++ {
		if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
			return i
		}
	}
	return -1
}

// String gives the pointer back in its text form.
func (p pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		_, _ = escapeToken.WriteString(&b, token)
	}
	return b.String()
}

// arrayIndex reads a reference token as the index of an array element: digits without a leading zero (RFC
// 6901, section 4). Nothing of an array but its elements has a name.
func arrayIndex(token string) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(token)
	return n, err == nil
}
