package event

import (
	"bytes"
	"encoding/json"
	"strconv"
)

const (
	// A schema compares numbers as exact fractions, and the validator crashes on those that are too large for
	// one. Both limits are far beyond what a double can hold.
	maxNumberText     = 1024 // bytes
	maxNumberExponent = 1024
)

// decode turns strict JSON into the values that schemas are checked on; numbers stay as they are written. It
// fails with a [*ContractError] at a number that no schema can be checked on.
func decode(body []byte) (any, error) {
	d := decoder{body: body}
	value, _ := d.value(skipSpace(body, 0))
	if d.err != nil {
		return nil, d.err
	}
	return value, nil
}

type decoder struct {
	body []byte
	err  error
	path pointer
}

// value decodes the value at i and gives the place after it.
func (d *decoder) value(i int) (any, int) {
	switch c := d.body[i]; c {
	case '{':
		return d.object(i)
	case '[':
		return d.array(i)
	case '"':
		end := skipString(d.body, i)
		return unquote(d.body[i:end]), end
	case 't', 'f':
		return c == 't', skipPlain(d.body, i)
	case 'n':
		return nil, skipPlain(d.body, i)
	}
	end := skipPlain(d.body, i)
	text := d.body[i:end]
	if d.err == nil && !isComparable(text) {
		d.err = &ContractError{Pointer: d.path.String(), Keyword: "number"}
	}
	return json.Number(text), end
}

func (d *decoder) object(i int) (any, int) {
	object := make(map[string]any)
	at, ok := next(d.body, i+1, true)
	for ok {
		name := unquote(at.name)
		d.path = append(d.path, name)
		value, end := d.value(at.value)
		d.path = d.path[:len(d.path)-1]
		object[name] = value
		at, ok = next(d.body, end, true)
	}
	return object, at.start + 1
}

func (d *decoder) array(i int) (any, int) {
	array := []any{}
	at, ok := next(d.body, i+1, false)
	for ok {
		d.path = append(d.path, strconv.Itoa(len(array)))
		value, end := d.value(at.value)
		d.path = d.path[:len(d.path)-1]
		array = append(array, value)
		at, ok = next(d.body, end, false)
	}
	return array, at.start + 1
}

// isComparable tells whether a number is small enough to be compared as an exact fraction.
func isComparable(text []byte) bool {
	if len(text) > maxNumberText {
		return false
	}
	e := bytes.IndexAny(text, "eE")
	if e < 0 {
		return true
	}
	n, err := strconv.Atoi(string(text[e+1:]))
	return err == nil && -maxNumberExponent <= n && n <= maxNumberExponent
}
