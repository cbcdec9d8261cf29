package event

import (
	"bytes"
	"fmt"
	"net/url"
)

// findForm gives a field of an urlencoded body, or the value at p in the JSON that the field holds.
func (d *Document) findForm(field string, p pointer) (string, error) {
	if p == nil {
		return formField(d.body, field)
	}
	inner, ok := d.fields[field]
	if !ok {
		text, err := formField(d.body, field)
		if err != nil {
			return "", err
		}
		inner = NewDocument(nil, []byte(text))
		if d.fields == nil {
			d.fields = make(map[string]*Document, 1)
		}
		d.fields[field] = inner
	}
	value, err := inner.findJSON(p)
	if err != nil {
		return "", fmt.Errorf("form field %s: %w", field, err)
	}
	return value, nil
}

// formField gives the one value of a field in an application/x-www-form-urlencoded body. Forms have no strict
// grammar: parsers differ on `;` and on broken escapes, so a body with either is ambiguous as a whole. A body
// that is not a form has no such field.
func formField(body []byte, field string) (string, error) {
	value, found := "", false
	for pair := range bytes.SplitSeq(body, []byte("&")) {
		if bytes.IndexByte(pair, ';') >= 0 {
			return "", fmt.Errorf("%w: the form uses `;`, which some parsers take for a separator", ErrAmbiguous)
		}
		rawName, rawValue, _ := bytes.Cut(pair, []byte("="))
		name, err := url.QueryUnescape(string(rawName))
		if err != nil {
			return "", fmt.Errorf("%w: the form has a broken escape", ErrAmbiguous)
		}
		if name != field {
			continue
		}
		if found {
			return "", fmt.Errorf("%w: form field %s is repeated", ErrAmbiguous, field)
		}
		found = true
		if value, err = url.QueryUnescape(string(rawValue)); err != nil {
			return "", fmt.Errorf("%w: form field %s has a broken escape", ErrAmbiguous, field)
		}
	}
	if !found {
		return "", fmt.Errorf("%w: no form field %s", ErrNotFound, field)
	}
	return value, nil
}
