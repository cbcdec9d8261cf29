package event

import (
	"strings"
	"testing"
)

func TestParseSelector(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, canonical string
		needsJSON             bool
	}{
		{"a header", "header x-event-id", "header X-Event-Id", false},
		{"several headers", "  header  webhook-id   svix-id ", "header Webhook-Id Svix-Id", false},
		{"a pointer", "json /data/id", "json /data/id", true},
		{"a pointer with escapes", "json /a~1b/~0c", "json /a~1b/~0c", true},
		{"a pointer to an empty name", "json /", "json /", true},
		{"a form field", "form MessageSid", "form MessageSid", false},
		{"JSON in a form field", "form payload /id", "form payload /id", false},
		{"the digest", "digest", "digest", false},
	}
	for _, tt := range tests {
		t.Run(tt.name+" is read and written", func(t *testing.T) {
			t.Parallel()
			s, err := ParseSelector(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if s.String() != tt.canonical || s.NeedsJSON() != tt.needsJSON || s.IsZero() {
				t.Errorf("got %q, NeedsJSON %v, IsZero %v", s, s.NeedsJSON(), s.IsZero())
			}
			if again, err := ParseSelector(s.String()); err != nil || again.String() != s.String() {
				t.Errorf("read again: %q, %v", again, err)
			}
		})
	}
	if (Selector{}).String() != "" || !(Selector{}).IsZero() || (Selector{}).NeedsJSON() {
		t.Error("the zero selector points somewhere")
	}
}

func TestParseSelectorSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, says string }{
		{"", "write `header NAME [NAME...]`"},
		{"id", "write `header NAME [NAME...]`"},
		{"jsonpath $.id", "`json /pointer`"},
		{"/data/id", "write `json /data/id`"},
		{"json", "write for example `/id`"},
		{"json id", "write `/id`"},
		{"json data.object.id", "write `/data/object/id`"},
		{"json /a~2", "write `~0` for a tilde"},
		{"json /a~", "write `~0` for a tilde"},
		{"header", "write for example `header X-Event-Id`"},
		{"header X-A, X-B", "without colons, commas"},
		{"header X-A:", "without colons"},
		{"header Ünï", "not a header name"},
		{"form", "write for example `form payload /id`"},
		{"form /id", "write for example `form payload /id`"},
		{"form payload id", "write `/id`"},
		{"digest sha256", "takes no argument"},
	}
	for _, tt := range tests {
		t.Run("refuses "+tt.text, func(t *testing.T) {
			t.Parallel()
			s, err := ParseSelector(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, %v; want an error with %q", s, err, tt.says)
			}
			if !s.IsZero() {
				t.Error("a selector comes with the error")
			}
		})
	}
}
