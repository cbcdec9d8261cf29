package event

import (
	"errors"
	"strings"
	"testing"
)

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(last string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range 40 {
			b.WriteString(`"n` + strings.Repeat("x", i) + `":0,`)
		}
		return b.String() + last + `:0}`
	}
	tests := []struct {
		name string
		body string
		says string // "" accepts
	}{
		{"an object is accepted", `{"id":"evt_1","n":[1,-2.5e3,true,false,null]}`, ""},
		{"white space around is accepted", " \t\r\n{} \n", ""},
		{"a scalar is accepted", `"evt"`, ""},
		{"escaped pairs of surrogates are accepted", `{"id":"\ud83d\ude00"}`, ""},
		{"escaped quotes and backslashes are accepted", `{"a\\":"\"","b\"":"\\\\\""}`, ""},
		{"the same name in different objects is accepted", `{"id":1,"data":{"id":2},"list":[{"id":3},{"id":4}]}`, ""},
		{"a name again after a nested object closed is refused", `{"id":1,"data":{"x":2},"id":3}`, "twice"},
		{"512 levels are accepted", nested(512), ""},
		{"513 levels are refused", nested(513), "more than 512 levels of nesting at byte 512"},
		{"an empty body is refused", "", "empty"},
		{"white space alone is refused", " \n", "empty"},
		{"a byte order mark is refused", "\xef\xbb\xbf{}", "byte order mark"},
		{"trailing data is refused", `{} {}`, "something follows the JSON value at byte 3"},
		{"trailing rubbish is refused", `{}x`, "something follows the JSON value at byte 2"},
		{"a trailing NUL is refused", "{}\x00", "something follows"},
		{"a trailing comma is refused", `{"a":1,}`, "syntax"},
		{"NaN is refused", `{"n":NaN}`, "a syntax error at byte 5"},
		{"Infinity is refused", `{"n":Infinity}`, "syntax"},
		{"negative Infinity is refused", `{"n":-Infinity}`, "syntax"},
		{"a leading zero is refused", `{"n":01}`, "syntax"},
		{"a leading plus is refused", `{"n":+1}`, "syntax"},
		{"a bare fraction is refused", `{"n":.5}`, "syntax"},
		{"hex numbers are refused", `{"n":0x1}`, "syntax"},
		{"single quotes are refused", `{'a':1}`, "syntax"},
		{"comments are refused", `{"a":1 /* c */}`, "syntax"},
		{"a body cut off is refused", `{"id":"evt`, "ends too early at byte 10"},
		{"a raw control character in a string is refused", "{\"a\":\"\n\"}", "syntax"},
		{"bytes that are not UTF-8 are refused", "{\"id\":\"evt_\xff\"}", "not valid UTF-8 at byte 11"},
		{"an overlong encoding is refused", "{\"id\":\"\xc0\xaf\"}", "UTF-8"},
		{"a surrogate in UTF-8 is refused", "{\"id\":\"\xed\xa0\x80\"}", "UTF-8"},
		{"a lone high surrogate is refused", `{"id":"\ud800"}`, "a lone surrogate at byte 7"},
		{"a lone low surrogate is refused", `{"id":"\uDFFF"}`, "surrogate"},
		{"a high surrogate before a letter is refused", `{"id":"\uD83D\u0041"}`, "surrogate"},
		{"a lone surrogate in a name is refused", `{"\udead":1}`, "surrogate"},
		{"a name that stands twice is refused", `{"id":1,"id":2}`, "twice in its object, letter case aside, at byte 8"},
		{"a name that stands twice below is refused", `{"a":[{"id":1,"id":2}]}`, "twice"},
		{"a name repeated by an escape is refused", `{"id":1,"\u0069d":2}`, "twice"},
		{"a name repeated in another case is refused", `{"id":1,"ID":2}`, "twice"},
		{"a name repeated by the Kelvin sign is refused", `{"k":1,"` + "\u212a" + `":2}`, "twice"},
		{"a name repeated by the long s is refused", `{"s":1,"\u017f":2}`, "twice"},
		{"a name repeated in a Greek case is refused", `{"σ":1,"ς":2}`, "twice"},
		{"an empty name twice is refused", `{"":1,"":2}`, "twice"},
		{"many names are accepted", many(`"other"`), ""},
		{"a name repeated among many is refused", many(`"NXX"`), "twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := NewDocument(nil, []byte(tt.body))
			err := doc.JSON()
			if tt.says == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, ErrInvalidJSON) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want ErrInvalidJSON with %q", err, tt.says)
			}
			if again := doc.JSON(); again != err { //nolint:errorlint // the very same error, because it is kept
				t.Errorf("checked again: %v", again)
			}
		})
	}
}

func TestStrictJSONNeverQuotesTheBody(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, body := range []string{
		secret, `{"` + secret, `{"` + secret + `":1,"` + secret + `":2}`, `{"a":` + secret + `}`,
		`"\ud800` + secret + `"`, "{}" + secret, "\xff" + secret, `{"a":"` + secret + "\x01\"}",
	} {
		err := NewDocument(nil, []byte(body)).JSON()
		if err == nil {
			t.Errorf("%q is accepted", body)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes the body: %v", err)
		}
	}
}
