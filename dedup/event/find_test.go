package event

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestFindInJSON(t *testing.T) {
	t.Parallel()
	const body = ` { "id" : "evt_1", "n": -12.50e3, "big":12345678901234567890, "s":"a\u00e9\n\"\\", "e":"",
		"data":{"object":{"id":"ch_1"},"list":[10,{"id":"x"},"two"]}, "a/b":1, "m~n":2, "":3, "\u0078y":4, "0":"zero",
		"t":true, "f":false, "nil":null } `
	tests := []struct {
		name, at, want string
		err            error
	}{
		{"a string", "/id", "evt_1", nil},
		{"a number as it is written", "/n", "-12.50e3", nil},
		{"a number beyond doubles", "/big", "12345678901234567890", nil},
		{"a string with escapes, decoded", "/s", "aé\n\"\\", nil},
		{"an empty string", "/e", "", nil},
		{"a nested value", "/data/object/id", "ch_1", nil},
		{"an array element", "/data/list/0", "10", nil},
		{"a value inside an array element", "/data/list/1/id", "x", nil},
		{"the last array element", "/data/list/2", "two", nil},
		{"a name with a slash", "/a~1b", "1", nil},
		{"a name with a tilde", "/m~0n", "2", nil},
		{"an empty name", "/", "3", nil},
		{"a name that is escaped in the body", "/xy", "4", nil},
		{"a name of digits", "/0", "zero", nil},
		{"nothing under another name", "/missing", "", ErrNotFound},
		{"nothing under a name in another case", "/ID", "", ErrNotFound},
		{"nothing inside a string", "/id/x", "", ErrNotFound},
		{"nothing behind the array", "/data/list/3", "", ErrNotFound},
		{"nothing at the dash of RFC 6901", "/data/list/-", "", ErrNotFound},
		{"nothing at an index with a leading zero", "/data/list/01", "", ErrNotFound},
		{"nothing at a negative index", "/data/list/-1", "", ErrNotFound},
		{"nothing at a name in an array", "/data/list/id", "", ErrNotFound},
		{"nothing at an index too large for an int", "/data/list/99999999999999999999", "", ErrNotFound},
		{"an object is no scalar", "/data", "", ErrNotScalar},
		{"an array is no scalar", "/data/list", "", ErrNotScalar},
		{"true is no scalar", "/t", "", ErrNotScalar},
		{"false is no scalar", "/f", "", ErrNotScalar},
		{"null is no scalar", "/nil", "", ErrNotScalar},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewDocument(nil, []byte(body)).Find(mustSelector(t, "json "+tt.at))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
	t.Run("a body that is not strict JSON is refused though the value stands before the fault", func(t *testing.T) {
		t.Parallel()
		got, err := NewDocument(nil, []byte(`{"id":"evt_1"} x`)).Find(mustSelector(t, "json /id"))
		if got != "" || !errors.Is(err, ErrInvalidJSON) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestFindInHeaders(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, selector string
		header         http.Header
		want           string
		err            error
	}{
		{"one header", "header x-id", http.Header{"X-Id": {"a"}}, "a", nil},
		{"the second where the first is absent", "header webhook-id svix-id", http.Header{"Svix-Id": {"b"}}, "b", nil},
		{"two that agree", "header webhook-id svix-id", http.Header{"Webhook-Id": {"c"}, "Svix-Id": {"c"}}, "c", nil},
		{"two that differ", "header webhook-id svix-id", http.Header{"Webhook-Id": {"c"}, "Svix-Id": {"d"}}, "", ErrAmbiguous},
		{"an empty one beside another", "header webhook-id svix-id", http.Header{"Webhook-Id": {""}, "Svix-Id": {"d"}}, "", ErrAmbiguous},
		{"one repeated with another value", "header x-id", http.Header{"X-Id": {"a", "b"}}, "", ErrAmbiguous},
		{"one repeated with the same value", "header x-id", http.Header{"X-Id": {"a", "a"}}, "", ErrAmbiguous},
		{"the second repeated beside the first", "header x-a x-b", http.Header{"X-A": {"a"}, "X-B": {"a", "a"}}, "", ErrAmbiguous},
		{"none", "header x-a x-b", http.Header{"X-C": {"a"}}, "", ErrNotFound},
		{"no headers at all", "header x-a", nil, "", ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewDocument(tt.header, nil).Find(mustSelector(t, tt.selector))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestFindInForm(t *testing.T) {
	t.Parallel()
	const github = "payload=%7B%22id%22%3A%22evt%2B1%22%2C%22n%22%3A7%7D&x=1"
	tests := []struct {
		name, selector, body, want string
		err                        error
	}{
		{"a field", "form MessageSid", "From=%2B49&MessageSid=SM1", "SM1", nil},
		{"a field with escapes", "form a", "a=x+y%20z%3B", "x y z;", nil},
		{"a field whose name is escaped", "form ab", "%61b=1", "1", nil},
		{"an empty field", "form a", "a=&b=1", "", nil},
		{"a string in a field's JSON", "form payload /id", github, "evt+1", nil},
		{"a number in a field's JSON", "form payload /n", github, "7", nil},
		{"nothing in a field's JSON", "form payload /z", github, "", ErrNotFound},
		{"no such field", "form a", "b=1", "", ErrNotFound},
		{"an empty body", "form a", "", "", ErrNotFound},
		{"JSON that is not strict in a field", "form payload /id", "payload=%7B%22id%22%3A1%2C%22ID%22%3A2%7D", "", ErrInvalidJSON},
		{"a repeated field", "form a", "a=1&b=2&a=1", "", ErrAmbiguous},
		{"a field repeated by an escape", "form a", "a=1&%61=2", "", ErrAmbiguous},
		{"a semicolon that may separate", "form a", "a=1;a=2", "", ErrAmbiguous},
		{"a broken escape in the value", "form a", "a=%zz", "", ErrAmbiguous},
		{"a broken escape in another name", "form a", "%=2&a=1", "", ErrAmbiguous},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := NewDocument(nil, []byte(tt.body))
			for range 2 { // the second answer comes from what the first has left
				got, err := doc.Find(mustSelector(t, tt.selector))
				if got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
				}
			}
		})
	}
}

func TestFindDigest(t *testing.T) {
	t.Parallel()
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
	got, err := NewDocument(nil, []byte("abc")).Find(mustSelector(t, "digest"))
	if got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := NewDocument(nil, nil).Find(Selector{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("the zero selector finds something: %v", err)
	}
}

func TestValidID(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, id string
		ok       bool
	}{
		{"a plain id", "evt_1", true},
		{"one byte", "x", true},
		{"512 bytes", strings.Repeat("x", 512), true},
		{"a space inside", "a b", true},
		{"letters of all scripts", "Ünï-日本-😀", true},
		{"an empty id", "", false},
		{"513 bytes", strings.Repeat("x", 513), false},
		{"a leading space", " a", false},
		{"a trailing no-break space", "a\u00a0", false},
		{"a newline", "a\nb", false},
		{"NUL", "a\x00", false},
		{"DEL", "a\x7fb", false},
		{"a C1 control", "a\u0085b", false},
		{"bytes that are not UTF-8", "evt_\xff", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := ValidID(tt.id); (err == nil) != tt.ok || !tt.ok && !errors.Is(err, ErrInvalidID) {
				t.Errorf("got %v", err)
			}
		})
	}
}
