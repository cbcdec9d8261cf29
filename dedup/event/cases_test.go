package event

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// The bodies are those of public bug reports, reduced: each was once read as an event that it is not.
func TestBodiesFromBugReports(t *testing.T) {
	t.Parallel()
	decode := func(text string) []byte {
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	id := mustSelector(t, "json /id")

	t.Run("two top-level ids are refused, none is picked", func(t *testing.T) {
		t.Parallel()
		body := decode("eyJpZCI6ImV2dF9kdXBfQSIsInR5cGUiOiJjaGFyZ2Uuc3VjY2VlZGVkIiwiZGF0YSI6eyJvYmplY3QiOnsiaWQiOiJjaF8xIn19LCJpZCI6ImV2dF9kdXBfQiJ9")
		if got, err := NewDocument(nil, body).Find(id); !errors.Is(err, ErrInvalidJSON) {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("ids beyond 2^53 stay distinct", func(t *testing.T) {
		t.Parallel()
		one, err1 := NewDocument(nil, []byte(`{"id":9007199254740992,"kind":"x"}`)).Find(id)
		two, err2 := NewDocument(nil, []byte(`{"id":9007199254740993,"kind":"x"}`)).Find(id)
		if err1 != nil || err2 != nil || one != "9007199254740992" || two != "9007199254740993" {
			t.Errorf("got %q, %v and %q, %v", one, err1, two, err2)
		}
	})
	t.Run("ids with bad bytes are refused, not folded into one", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"eyJpZCI6ImV2dF//IiwidHlwZSI6IngifQ==", "eyJpZCI6ImV2dF/+IiwidHlwZSI6IngifQ=="} {
			if got, err := NewDocument(nil, decode(text)).Find(id); !errors.Is(err, ErrInvalidJSON) {
				t.Errorf("%s: got %q, %v", text, got, err)
			}
		}
	})
	t.Run("20,000 levels do no harm", func(t *testing.T) {
		t.Parallel()
		body := `{"id":"evt_deep","data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`
		doc := NewDocument(nil, []byte(body))
		if got, err := doc.Find(id); !errors.Is(err, ErrInvalidJSON) {
			t.Errorf("got %q, %v", got, err)
		}
		if json := mustComparison(t, "json").Fingerprint(doc); json != doc.Digest() {
			t.Error("its fingerprint is not the digest of its bytes")
		}
	})
}

func mustSelector(t testing.TB, text string) Selector {
	t.Helper()
	s, err := ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustComparison(t testing.TB, text string) Comparison {
	t.Helper()
	c, err := ParseComparison(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
