package caddy

import (
	"strings"
	"testing"

	"github.com/einlass/einlass/dedup"
)

func TestAVerdictIsStrictJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, json string
		want       appVerdict
	}{
		{"the least", `{"outcome":"committed"}`, appVerdict{Outcome: outcomeCommitted, Status: 200}},
		{"all of it", `{"outcome":"rejected","status":422,"content_type":"text/plain; charset=utf-8","body":"no"}`,
			appVerdict{outcomeRejected, 422, "text/plain; charset=utf-8", "no"}},
		{"aborted", `{"outcome":"aborted"}`, appVerdict{Outcome: outcomeAborted, Status: 200}},
		{"pending, which an answer to the outcome question may be", `{"outcome":"pending"}`, appVerdict{Outcome: outcomePending, Status: 200}},
		{"null is as if left out", `{"outcome":"committed","status":null,"content_type":null,"body":null}`, appVerdict{Outcome: outcomeCommitted, Status: 200}},
		{"members of the app's own", `{"outcome":"committed","order":{"id":[1,2,{}]},"Body":"x","OUTCOME":"aborted"}`, appVerdict{Outcome: outcomeCommitted, Status: 200}},
		{"escapes", `{"outcome":"c\u006fmmitted","body":"\u00e9\ud83d\ude00\u0000\n"}`, appVerdict{Outcome: outcomeCommitted, Status: 200, Body: "é😀\x00\n"}},
		{"white space around", "\r\n\t {\"outcome\":\"committed\"} \n", appVerdict{Outcome: outcomeCommitted, Status: 200}},
		{"599", `{"outcome":"rejected","status":599}`, appVerdict{Outcome: outcomeRejected, Status: 599}},
		{"204", `{"outcome":"committed","status":204}`, appVerdict{Outcome: outcomeCommitted, Status: 204}},
	} {
		if got, err := parseVerdict([]byte(c.json)); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for name, text := range map[string]string{
		"nothing":                    "",
		"blanks":                     "  ",
		"text":                       "committed",
		"a string":                   `"committed"`,
		"null":                       "null",
		"an array":                   `[{"outcome":"committed"}]`,
		"cut":                        `{"outcome":"committed"`,
		"something behind":           `{"outcome":"committed"}x`,
		"a second document":          `{"outcome":"committed"}{"outcome":"aborted"}`,
		"a zero byte behind":         "{\"outcome\":\"committed\"}\x00",
		"a byte order mark":          "\ufeff{\"outcome\":\"committed\"}",
		"UTF-16":                     "\xff\xfe{\x00}\x00",
		"a repeated name":            `{"outcome":"committed","outcome":"aborted"}`,
		"a repeated name, escaped":   `{"outcome":"committed","outcom\u0065":"aborted"}`,
		"a repeated unknown name":    `{"outcome":"committed","a":1,"a":2}`,
		"a repeated name inside":     `{"outcome":"committed","a":{"b":1,"b":2}}`,
		"no outcome":                 `{"status":200}`,
		"an empty outcome":           `{"outcome":""}`,
		"outcome null":               `{"outcome":null}`,
		"outcome in capitals":        `{"outcome":"Committed"}`,
		"outcome with a blank":       `{"outcome":"committed "}`,
		"an unknown outcome":         `{"outcome":"done"}`,
		"the gate's own word":        `{"outcome":"in_doubt"}`,
		"another own word":           `{"outcome":"accepted"}`,
		"outcome of another kind":    `{"outcome":true}`,
		"outcomes":                   `{"outcome":["committed"]}`,
		"the name in capitals":       `{"Outcome":"committed"}`,
		"status 99":                  `{"outcome":"committed","status":99}`,
		"status 100":                 `{"outcome":"committed","status":100}`,
		"status 199":                 `{"outcome":"committed","status":199}`,
		"status 302":                 `{"outcome":"committed","status":302}`,
		"status 600":                 `{"outcome":"committed","status":600}`,
		"status -1":                  `{"outcome":"committed","status":-1}`,
		"status as text":             `{"outcome":"committed","status":"200"}`,
		"half a status":              `{"outcome":"committed","status":200.5}`,
		"a huge status":              `{"outcome":"committed","status":18446744073709551816}`,
		"an exponent":                `{"outcome":"committed","status":1e400}`,
		"body of another kind":       `{"outcome":"committed","body":{"a":1}}`,
		"body of bytes":              `{"outcome":"committed","body":[1]}`,
		"invalid UTF-8":              "{\"outcome\":\"committed\",\"body\":\"\xff\"}",
		"invalid UTF-8 in a name":    "{\"outcome\":\"committed\",\"\xc3\x28\":1}",
		"an overlong form":           "{\"outcome\":\"committed\",\"body\":\"\xc0\xaf\"}",
		"a lone surrogate":           `{"outcome":"committed","body":"\ud800"}`,
		"a raw control character":    "{\"outcome\":\"committed\",\"body\":\"a\nb\"}",
		"a comment":                  `{"outcome":"committed"/*x*/}`,
		"a comma too many":           `{"outcome":"committed",}`,
		"NaN":                        `{"outcome":"committed","a":NaN}`,
		"endless depth":              `{"outcome":"committed","a":` + deep + `}`,
		"a type with a line end":     `{"outcome":"committed","content_type":"text/plain\r\nSet-Cookie: a=b"}`,
		"a type with a line feed":    `{"outcome":"committed","content_type":"text/plain\nX: y"}`,
		"a type with a return":       `{"outcome":"committed","content_type":"text/plain\rX: y"}`,
		"a type with a zero byte":    `{"outcome":"committed","content_type":"a\u0000b"}`,
		"a type with a control byte": `{"outcome":"committed","content_type":"a\u007fb"}`,
		"an endless type":            `{"outcome":"committed","content_type":"` + strings.Repeat("a", 257) + `"}`,
	} {
		got, err := parseVerdict([]byte(text))
		switch {
		case err == nil:
			t.Errorf("%s: accepted as %+v", name, got)
		case got != appVerdict{}:
			t.Errorf("%s: an error, and %+v", name, got)
		case strings.Contains(err.Error(), "Set-Cookie"), strings.Contains(err.Error(), "done"):
			t.Errorf("%s: the error quotes the app: %v", name, err)
		}
	}
}

func TestAVerdictIsKeptWithinTheSourcesLimits(t *testing.T) {
	t.Parallel()
	v := appVerdict{outcomeCommitted, 201, "text/plain", "0123456789"}
	for _, c := range []struct {
		name   string
		limits receiptLimits
		want   dedup.Answer
	}{
		{"all of it", receiptLimits{10, []string{"x-own", "content-type"}}, dedup.Answer{Status: 201, Header: []dedup.Field{{Name: "Content-Type", Value: "text/plain"}}, Body: []byte("0123456789")}},
		{"no header", receiptLimits{10, nil}, dedup.Answer{Status: 201, Body: []byte("0123456789")}},
		{"a byte too many", receiptLimits{9, nil}, dedup.Answer{Status: 201, BodyDropped: true}},
		{"no body", receiptLimits{0, nil}, dedup.Answer{Status: 201, BodyDropped: true}},
	} {
		if got := v.answer(c.limits); !got.Equal(c.want) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
	v.Body = ""
	if got := v.answer(receiptLimits{}); got.BodyDropped || got.Body != nil {
		t.Errorf("an empty body: got %+v", got)
	}
}
