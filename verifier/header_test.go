package verifier

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

var (
	stripeList = list{separator: ",", assign: "=", field: "v1", timeField: "t"}
	spaceList  = list{separator: " ", assign: ",", field: "v1"}
	bareList   = list{separator: ",", assign: "=", timeField: "t"}
	blankList  = list{separator: ",", assign: "=", field: "sha256", blanks: true}
)

func TestListsAreParsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		list       list
		value      string
		signatures []string
		timestamp  string
	}{
		"one":                            {stripeList, "t=1,v1=a", []string{"a"}, "1"},
		"the time last":                  {stripeList, "v1=a,t=1", []string{"a"}, "1"},
		"two signatures":                 {stripeList, "t=1,v1=a,v1=b", []string{"a", "b"}, "1"},
		"other versions are ignored":     {stripeList, "t=1,v0=z,v1=a,v2=y", []string{"a"}, "1"},
		"names match in their case":      {stripeList, "t=1,V1=z,v1=a", []string{"a"}, "1"},
		"entries without a name":         {stripeList, "t=1,,z,v1=a,", []string{"a"}, "1"},
		"a value with the assign sign":   {stripeList, "t=1,v1=a=b=", []string{"a=b="}, "1"},
		"an empty value":                 {stripeList, "t=,v1=", []string{""}, ""},
		"bare entries":                   {bareList, "a=,t=1,b", []string{"a=", "b"}, "1"},
		"blanks that do not count":       {blankList, "sha256=a, sha256=b\t ,sha1=c", []string{"a", "b"}, ""},
		"standard webhooks":              {spaceList, "v1,a v1a,b v1,c", []string{"a", "c"}, ""},
		"a time where none is looked at": {spaceList, "t,1 v1,a", []string{"a"}, ""},
	} {
		signatures, timestamp, err := test.list.parse("X", test.value, nil)
		if err != nil || !slices.Equal(signatures, test.signatures) || timestamp != test.timestamp {
			t.Errorf("%s: %q, %q, %v", name, signatures, timestamp, err)
		}
	}
}

func TestMalformedListsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		list  list
		value string
	}{
		"no time":                    {stripeList, "v1=a"},
		"two times":                  {stripeList, "t=1,t=1,v1=a"},
		"two times, the first empty": {stripeList, "t=,t=1,v1=a"},
		"no signature":               {stripeList, "t=1"},
		"only a weaker version":      {stripeList, "t=1,v0=a"},
		"a space behind the comma":   {stripeList, "t=1, v1=a"},
		"another separator":          {stripeList, "t=1;v1=a"},
		"no name":                    {spaceList, "a"},
		"a comma between entries":    {spaceList, "v2,a,v1,b"},
		"bare entries, two times":    {bareList, "t=1,a,t=1"},
		"more than 64 entries":       {spaceList, strings.Repeat("v1,a ", 64) + "v1,a"},
		"more than 64 separators":    {stripeList, "t=1,v1=a" + strings.Repeat(",", 63)},
	} {
		_, _, err := test.list.parse("X", test.value, nil)
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Reason != ReasonMalformedHeader {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, _, err := spaceList.parse("X", strings.TrimSpace(strings.Repeat("v1,a ", 64)), nil); err != nil || len(s) != 64 {
		t.Errorf("64 entries: %d, %v", len(s), err)
	}
}

func TestAHeaderMustBeSingle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values []string
		want   Reason
	}{
		"absent":   {nil, ReasonMissingHeader},
		"empty":    {[]string{""}, ReasonMissingHeader},
		"blank":    {[]string{" \t"}, ReasonMissingHeader},
		"two":      {[]string{"a", "a"}, ReasonRepeatedHeader},
		"too long": {[]string{"abcdefghi"}, ReasonMalformedHeader},
	} {
		_, err := single(http.Header{"X": test.values}, "X", 8)
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Reason != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if value, err := single(http.Header{"X": {"abcdefgh"}}, "X", 8); value != "abcdefgh" || err != nil {
		t.Errorf("single: %q, %v", value, err)
	}
}

// FuzzList holds the list parser to its grammar: what it returns is in the
// header as an entry, and nothing that counts is left out.
func FuzzList(f *testing.F) {
	for _, seed := range []string{"t=1,v1=a", "v1=a,t=1,v0=b,v1=c", "t=1,t=2,v1=a", "v1,a v1,b", ",,,=,", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, l := range []list{stripeList, spaceList, bareList} {
			signatures, timestamp, err := l.parse("X", value, nil)
			var want []string
			times := 0
			entries := strings.Split(value, l.separator)
			for _, entry := range entries {
				isTime := l.timeField != "" && strings.HasPrefix(entry, l.timeField+l.assign)
				if isTime {
					times++
				}
				if l.field == "" && !isTime {
					want = append(want, entry)
				}
				if s, ok := strings.CutPrefix(entry, l.field+l.assign); ok && l.field != "" {
					want = append(want, s)
				}
			}
			ok := len(entries) <= maxListEntries && len(want) > 0 && (l.timeField == "" || times == 1)
			if ok != (err == nil) {
				t.Fatalf("%q: %v", value, err)
			}
			if !ok {
				continue
			}
			if !slices.Equal(signatures, want) {
				t.Fatalf("%q: %q, want %q", value, signatures, want)
			}
			if l.timeField != "" && !slices.Contains(entries, l.timeField+l.assign+timestamp) {
				t.Fatalf("%q: time %q", value, timestamp)
			}
		}
	})
}
