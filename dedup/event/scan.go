package event

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions of this file walk bytes that [checkSyntax] has found to be one JSON value. They check nothing
// again: on other bytes their results mean nothing.

// skipSpace gives the place of the first byte at or after i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString gives the place after the string whose opening quote is at i.
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		end := i + n
		escaped := false
		for j := end - 1; j >= i && b[j] == '\\'; j-- {
			escaped = !escaped
		}
		i = end + 1
		if !escaped {
			return i
		}
	}
}

// skipValue gives the place after the value that begins at i. Containers cost no stack.
func skipValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case '"':
			i = skipString(b, i)
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
		default:
			i = skipPlain(b, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// skipPlain gives the place after the number, boolean or null that begins at i.
func skipPlain(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// element is what an iteration over a container gives: the place where the element begins, its quoted name,
// nil in an array, and the place where its value begins.
type element struct {
	start int
	name  []byte
	value int
}

// next gives the container's first element when i is behind its opening bracket, and the following one when i
// is behind a value. Without one, ok is false and the container's closing bracket is at at.start.
func next(b []byte, i int, object bool) (at element, ok bool) {
	i = skipSpace(b, i)
	if b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	if b[i] == '}' || b[i] == ']' {
		return element{start: i}, false
	}
	if !object {
		return element{start: i, value: i}, true
	}
	end := skipString(b, i)
	name := b[i:end]
	colon := skipSpace(b, end)
	return element{start: i, name: name, value: skipSpace(b, colon+1)}, true
}

// seek gives the place where the value at p begins.
func seek(b []byte, p pointer) (int, bool) {
	i := skipSpace(b, 0)
	for _, token := range p {
		var ok bool
		if i, ok = child(b, i, token); !ok {
			return 0, false
		}
	}
	return i, true
}

// child gives the place where the member or element that token names begins, in the value at i.
func child(b []byte, i int, token string) (int, bool) {
	object := b[i] == '{'
	index, counted := arrayIndex(token)
	if !object && (b[i] != '[' || !counted) {
		return 0, false
	}
	at, ok := next(b, i+1, object)
	for n := 0; ok; n++ {
		if object && isName(at.name, token) || !object && n == index {
			return at.value, true
		}
		at, ok = next(b, skipValue(b, at.value), object)
	}
	return 0, false
}

// isName compares a quoted string with a plain one.
func isName(quoted []byte, name string) bool {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == name // does not allocate
	}
	return unquote(quoted) == name
}

// unquote decodes a quoted string.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	plain, _ := jsontext.AppendUnquote(make([]byte, 0, len(inner)), quoted) // valid, so it cannot fail
	return string(plain)
}
