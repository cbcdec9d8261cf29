package event

import (
	"strings"
	"testing"
)

func TestParseComparison(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"bytes", "id", "json", "json ignore /attempt /meta/sent~1at"} {
		c, err := ParseComparison(" " + text + " ")
		if err != nil || c.String() != text || c.ByID() != (text == "id") {
			t.Errorf("%s: got %q, ByID %v, %v", text, c, c.ByID(), err)
		}
	}
	if (Comparison{}).String() != "bytes" {
		t.Error("the zero Comparison is not `bytes`")
	}
	for text, says := range map[string]string{
		"":                 "write `bytes`",
		"raw":              "write `bytes`",
		"bytes please":     "takes no argument",
		"json /a":          "write for example `json ignore /attempt /sent_at`",
		"json ignore":      "write for example",
		"json ignore a":    "write `/a`",
		"json ignore /a~9": "write `~0`",
	} {
		if _, err := ParseComparison(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want an error with %q", text, err, says)
		}
	}
}

func TestFingerprintComparesJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, how, one, two string
		equal               bool
	}{
		{"bytes: white space counts", "bytes", `{"a":1}`, `{"a": 1}`, false},
		{"json: white space and order do not count", "json", `{"a":1,"b":[1,2]}`, "{ \"b\": [1,\n2], \"a\": 1 }", true},
		{"json: escapes do not count", "json", `{"a":"\u00e9\/"}`, `{"a":"é/"}`, true},
		{"json: the form of a number does not count", "json", `[1,0.1,2e-3,-0,1e2]`, `[1.0,1e-1,0.002,0,100]`, true},
		{"json: the value of a number counts", "json", `{"a":1}`, `{"a":2}`, false},
		{"json: numbers and strings differ", "json", `{"a":1}`, `{"a":"1"}`, false},
		{"json: order in arrays counts", "json", `[1,2]`, `[2,1]`, false},
		{"json: null and absent differ", "json", `{"a":null}`, `{}`, false},
		{"json: Unicode is not normalised", "json", `"é"`, `"e\u0301"`, false},
		{"json: integers beyond 2^53 are compared as bytes", "json", `{"id":9007199254740993}`, `{"id":9007199254740992}`, false},
		{"json: integers beyond 2^53 with white space differ", "json", `{"id":9007199254740993}`, `{"id": 9007199254740993}`, false},
		{"json: numbers that would be rounded differ", "json", `[0.1]`, `[0.10000000000000000001]`, false},
		{"json: numbers that would underflow differ", "json", `[0]`, `[1e-400]`, false},
		{"json: numbers that would overflow are compared as bytes", "json", `[1e400]`, `[ 1e400]`, false},
		{"json: bodies that are not strict are compared as bytes", "json", `{"a":1,"a":1}`, `{"a":1, "a":1}`, false},
		{"json: an ignored member does not count", "json ignore /attempt", `{"id":1,"attempt":1}`, `{"attempt":2,"id":1}`, true},
		{"json: an ignored member may be absent", "json ignore /attempt", `{"id":1,"attempt":{"n":[1]}}`, `{"id":1}`, true},
		{"json: other members still count", "json ignore /attempt", `{"id":1,"attempt":1}`, `{"id":2,"attempt":1}`, false},
		{"json: the same name elsewhere still counts", "json ignore /attempt", `{"a":{"attempt":1}}`, `{"a":{"attempt":2}}`, false},
		{"json: a nested member is ignored", "json ignore /m/t /x", `{"m":{"t":1,"u":2},"x":3}`, `{"m":{"u":2,"t":9}}`, true},
		{"json: members in array elements are ignored", "json ignore /l/0/t /l/2", `{"l":[{"t":1},5,6]}`, `{"l":[{},5]}`, true},
		{"json: a name escaped in the body is ignored", "json ignore /attempt", `{"\u0061ttempt":1}`, `{}`, true},
		{"json: an ignored number may be inexact", "json ignore /t", `{"t":0.10000000000000000001,"a":1}`, `{"a":1.0}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := mustComparison(t, tt.how)
			one := c.Fingerprint(NewDocument(nil, []byte(tt.one)))
			two := c.Fingerprint(NewDocument(nil, []byte(tt.two)))
			if (one == two) != tt.equal {
				t.Errorf("equal: %v, want %v", one == two, tt.equal)
			}
		})
	}
	t.Run("id: the fingerprint is the digest of the bytes", func(t *testing.T) {
		t.Parallel()
		doc := NewDocument(nil, []byte(`{"a":1}`))
		if mustComparison(t, "id").Fingerprint(doc) != doc.Digest() {
			t.Error("it is not")
		}
	})
}

func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, want string // "" is not canonicalised
	}{
		{
			"RFC 8785 section 3.2.2, its exact numbers",
			`{"numbers":[4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			"RFC 8785 section 3.2.3, names sorted as UTF-16",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
		{"2^53 is exact", `[9007199254740992,-9007199254740992]`, `[9007199254740992,-9007199254740992]`},
		{"integers with a fraction of zeros", `[10.000,100e-1,0.0e99999999999]`, `[10,10,0]`},
		{"the smallest double", `5e-324`, `5e-324`},
		{"2^53+2, though a double", `9007199254740994`, ""},
		{"1e30", `1e30`, ""},
		{"RFC 8785's number that is rounded", `333333333.33333329`, ""},
		{"an exponent beyond any int", `1e99999999999`, ""},
		{"a negative exponent beyond any int", `1e-99999999999`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := canonical([]byte(tt.body), nil)
			if string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("got %s, %v; want %s", got, ok, tt.want)
			}
		})
	}
}
