package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
)

// Document is one delivery: its headers and its body. What is asked of it is worked out when it is asked, and
// once. A Document is for one goroutine; neither the headers nor the body may change while it is in use.
type Document struct {
	header http.Header
	body   []byte

	checked bool
	err     error

	digested bool
	digest   [32]byte

	fields map[string]*Document // JSON in form fields, by field
}

// NewDocument takes a delivery's headers and body. It looks at neither yet.
func NewDocument(h http.Header, body []byte) *Document {
	return &Document{header: h, body: body}
}

// JSON checks that the body is strict JSON: one value of RFC 8259 in valid UTF-8, without byte order mark,
// without lone surrogates, without names that stand twice in an object (also by case folding), at most 512
// levels deep, with nothing behind it. The error wraps [ErrInvalidJSON], says where in bytes from 0, and
// quotes nothing of the body.
func (d *Document) JSON() error {
	if !d.checked {
		d.checked, d.err = true, checkStrict(d.body)
	}
	return d.err
}

// Find gives the value that s points at. Strings are decoded; numbers are given as they are written, so that
// ids beyond 2^53 stay distinct. Errors: [ErrNotFound], [ErrAmbiguous], [ErrInvalidJSON], [ErrNotScalar]. An
// empty value that is present is found.
func (d *Document) Find(s Selector) (string, error) {
	switch s.kind {
	case inHeader:
		return d.findHeader(s.headers)
	case inJSON:
		return d.findJSON(s.pointer)
	case inForm:
		return d.findForm(s.field, s.pointer)
	case inDigest:
		sum := d.Digest()
		return hex.EncodeToString(sum[:]), nil
	}
	return "", fmt.Errorf("%w: no selector is set", ErrNotFound)
}

// Digest gives the SHA-256 of the body as it came.
func (d *Document) Digest() [32]byte {
	if !d.digested {
		d.digested, d.digest = true, sha256.Sum256(d.body)
	}
	return d.digest
}

// findHeader gives the first header that is present. Several names mean the same thing under different
// senders' words: where two of them are present they must agree, or somebody added one.
func (d *Document) findHeader(names []string) (string, error) {
	found, value := "", ""
	for _, name := range names {
		values := d.header[name]
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return "", fmt.Errorf("%w: header %s is repeated", ErrAmbiguous, name)
		case found == "":
			found, value = name, values[0]
		case values[0] != value:
			return "", fmt.Errorf("%w: headers %s and %s differ", ErrAmbiguous, found, name)
		}
	}
	if found == "" {
		return "", fmt.Errorf("%w: no header %s", ErrNotFound, joinOr(names))
	}
	return value, nil
}

func joinOr(names []string) string {
	text := names[0]
	for _, name := range names[1:] {
		text += " or " + name
	}
	return text
}

func (d *Document) findJSON(p pointer) (string, error) {
	if err := d.JSON(); err != nil {
		return "", err
	}
	at, ok := seek(d.body, p)
	if !ok {
		return "", fmt.Errorf("%w: nothing at %s", ErrNotFound, p)
	}
	switch c := d.body[at]; {
	case c == '"':
		return unquote(d.body[at:skipString(d.body, at)]), nil
	case c == '-' || '0' <= c && c <= '9':
		return string(d.body[at:skipPlain(d.body, at)]), nil
	}
	return "", fmt.Errorf("%w: at %s", ErrNotScalar, p)
}
