package verifier

import (
	"fmt"
	"net/http"
	"strings"
)

// part is one piece of signed content.
type part struct {
	kind partKind
	text string // the literal, or the canonical header name
}

type partKind uint8

const (
	partLiteral partKind = iota
	partTimestamp
	partID
	partURL
	partMethod
	partHeader
)

// template is the signed content, split at {body} so that the body can be
// streamed between its two halves.
type template struct {
	before, after []part
	body          bool
}

// parseTemplate compiles a content template. Braces stand only for
// placeholders; {body} may occur once or not at all.
func parseTemplate(text string) (template, error) {
	var t template
	add := func(p part) {
		if t.body {
			t.after = append(t.after, p)
		} else {
			t.before = append(t.before, p)
		}
	}
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if strings.Contains(literal, "}") {
			return t, fmt.Errorf("content: a %q without its %q", "}", "{")
		}
		if literal != "" {
			add(part{partLiteral, literal})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return t, fmt.Errorf("content: a %q without its %q", "{", "}")
		}
		text = after
		if name == "body" {
			if t.body {
				return t, fmt.Errorf("content: {body} may occur only once")
			}
			t.body = true
			continue
		}
		p, err := placeholder(name)
		if err != nil {
			return t, err
		}
		add(p)
	}
	return t, nil
}

func placeholder(name string) (part, error) {
	switch name {
	case "timestamp":
		return part{kind: partTimestamp}, nil
	case "id":
		return part{kind: partID}, nil
	case "url":
		return part{kind: partURL}, nil
	case "method":
		return part{kind: partMethod}, nil
	}
	if header, ok := strings.CutPrefix(name, "header."); ok && validHeaderName(header) {
		return part{partHeader, http.CanonicalHeaderKey(header)}, nil
	}
	return part{}, fmt.Errorf("content: unknown placeholder {%s}: {body}, {timestamp}, {id}, {url}, {method} or {header.Name} is expected", name)
}

// uses reports whether the content holds a placeholder of this kind and, for
// headers, of this name.
func (t template) uses(kind partKind, header string) bool {
	for _, parts := range [2][]part{t.before, t.after} {
		for _, p := range parts {
			if p.kind == kind && (kind != partHeader || p.text == header) {
				return true
			}
		}
	}
	return false
}

// headers lists the headers that are part of the content.
func (t template) headers() []string {
	var names []string
	for _, parts := range [2][]part{t.before, t.after} {
		for _, p := range parts {
			if p.kind == partHeader {
				names = append(names, p.text)
			}
		}
	}
	return names
}

// render appends the parts to dst. Every header among them has been found
// single before.
func render(dst []byte, parts []part, req Request, timestamp, id string) []byte {
	for _, p := range parts {
		switch p.kind {
		case partLiteral:
			dst = append(dst, p.text...)
		case partTimestamp:
			dst = append(dst, timestamp...)
		case partID:
			dst = append(dst, id...)
		case partURL:
			dst = append(dst, req.URL...)
		case partMethod:
			dst = append(dst, req.Method...)
		case partHeader:
			dst = append(dst, req.Header.Get(p.text)...)
		}
	}
	return dst
}

// validHeaderName reports whether name is an RFC 9110 token.
func validHeaderName(name string) bool {
	for i := range len(name) {
		c := name[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}
