package event

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

var fuzzBodies = []string{
	`{"id":"evt_1","type":"x","n":[1,-2.5e3,true,false,null,{}]}`,
	`{"id":9007199254740993}`, `{"id":1,"ID":2}`, `{"\u0069d":"\ud83d\ude00"}`, `{"ID":"x"}`,
	`{"id":"\ud800"}`, "\xef\xbb\xbf{}", `[[[]]]`, `"id"`, ` 1e5 `, `{"a\\":"\"","id":"\\"}`, `{"id":-0.0}`, `{} {}`,
	`{"id":{"id":null}}`, `{"K":1,"` + "\u212a" + `":2}`, "{\"id\":\"\xff\"}", `{"a":[1,{"id":"x"},"two"],"id":1e400}`,
}

// FuzzStrictJSON: what is accepted here, encoding/json accepts too, and reads the same values from.
func FuzzStrictJSON(f *testing.F) {
	for _, body := range fuzzBodies {
		f.Add([]byte(body))
	}
	id := mustSelector(f, "json /id")
	f.Fuzz(func(t *testing.T, body []byte) {
		doc := NewDocument(nil, body)
		if doc.JSON() != nil {
			return
		}
		if !utf8.Valid(body) {
			t.Fatal("accepted though not UTF-8")
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		var theirs any
		if err := dec.Decode(&theirs); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if _, err := dec.Token(); err != io.EOF {
			t.Fatalf("encoding/json finds something behind it: %v", err)
		}
		ours, err := decode(body)
		if err == nil && !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("decoded differently: %#v, %#v", ours, theirs)
		}
		got, err := doc.Find(id)
		if want, ok := scalarID(theirs); ok != (err == nil) || got != want {
			t.Fatalf("id %q, %v; encoding/json has %q, %v", got, err, want, ok)
		}
		if err == nil {
			checkStructID(t, body, got)
		}
	})
}

// scalarID gives the member id of a decoded object, if it is a string or a number.
func scalarID(value any) (string, bool) {
	object, _ := value.(map[string]any)
	switch id := object["id"].(type) {
	case string:
		return id, true
	case json.Number:
		return id.String(), true
	}
	return "", false
}

// checkStructID reads the id as an app does: into a struct, by which encoding/json ignores letter case.
func checkStructID(t *testing.T, body []byte, want string) {
	t.Helper()
	var app struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(body, &app); err != nil {
		t.Fatal(err)
	}
	got := string(app.ID)
	if strings.HasPrefix(got, `"`) {
		if err := json.Unmarshal(app.ID, &got); err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Fatalf("an app reads the id %q, the gate %q", got, want)
	}
}

// FuzzCanonical: the canonical form is the same for the same value written in another way, is its own
// canonical form, and is the same value to encoding/json.
func FuzzCanonical(f *testing.F) {
	for _, body := range fuzzBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if NewDocument(nil, body).JSON() != nil {
			return
		}
		form, ok := canonical(body, nil)
		if !ok {
			return
		}
		if again, ok := canonical(form, nil); !ok || !bytes.Equal(form, again) {
			t.Fatalf("canonical form of the canonical form: %s, %s", form, again)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, body, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		if other, ok := canonical(spaced.Bytes(), nil); !ok || !bytes.Equal(form, other) {
			t.Fatalf("white space counts: %s, %s", form, other)
		}
		var before, after any
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(form, &after); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("another value: %s, %s", body, form)
		}
	})
}

// FuzzSelector: what is parsed is written in a form that is parsed to the same.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"header A b", "json /a~1b/0", "form f /a b", "digest", "json /", "form a  /x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		again, err := ParseSelector(s.String())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("%q: %#v, then %#v, %v", text, s, again, err)
		}
	})
}
