package verifiertest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/verifier"
)

// flipsHeaders relies on every header that Sign returns being significant in
// every bit: signature, signed time, signed id.
func (e *exercise) flipsHeaders(t *testing.T) {
	v := e.compile(t, 0)
	req, names := e.signed(t, v, now)
	for _, name := range names {
		value := []byte(req.Header.Get(name))
		for i := range value {
			for bit := range 8 {
				flipped := bytes.Clone(value)
				flipped[i] ^= 1 << bit
				if _, err := verify(v, with(req, name, string(flipped)), e.Body); err == nil {
					t.Errorf("%s: bit %d of byte %d flipped: accepted", name, bit, i)
				}
			}
		}
	}
}

func (e *exercise) flipsBody(t *testing.T) {
	v := e.compile(t, 0)
	req, _ := e.signed(t, v, now)
	for i := range e.Body {
		for bit := range 8 {
			flipped := bytes.Clone(e.Body)
			flipped[i] ^= 1 << bit
			if _, err := verify(v, req, flipped); err == nil {
				t.Errorf("bit %d of byte %d flipped: accepted", bit, i)
			}
		}
	}
}

func (e *exercise) resizesBody(t *testing.T) {
	v := e.compile(t, 0)
	req, _ := e.signed(t, v, now)
	for what, body := range map[string][]byte{
		"empty":            {},
		"without its end":  e.Body[:len(e.Body)-1],
		"without its head": e.Body[1:],
		"with a space":     append(bytes.Clone(e.Body), ' '),
		"with a newline":   append(bytes.Clone(e.Body), '\n'),
		"with a NUL":       append(bytes.Clone(e.Body), 0),
		"twice":            append(bytes.Clone(e.Body), e.Body...),
	} {
		_, err := verify(v, req, body)
		refused(t, what, err)
	}
}

func (e *exercise) breaksHeaders(t *testing.T) {
	v := e.compile(t, 0)
	req, names := e.signed(t, v, now)
	for _, name := range names {
		value := req.Header.Get(name)
		for what, test := range map[string]struct {
			req    verifier.Request
			reason verifier.Reason
		}{
			"absent":          {with(req, name), verifier.ReasonMissingHeader},
			"empty":           {with(req, name, ""), verifier.ReasonMissingHeader},
			"blank":           {with(req, name, " \t"), verifier.ReasonMissingHeader},
			"twice the same":  {with(req, name, value, value), verifier.ReasonRepeatedHeader},
			"bad, then good":  {with(req, name, "x", value), verifier.ReasonRepeatedHeader},
			"good, then bad":  {with(req, name, value, "x"), verifier.ReasonRepeatedHeader},
			"good, then none": {with(req, name, value, ""), verifier.ReasonRepeatedHeader},
			"far too long":    {with(req, name, strings.Repeat(value, 1+(64<<10)/len(value))), verifier.ReasonMalformedHeader},
		} {
			_, err := v.Begin(test.req)
			refused(t, name+" "+what, err, test.reason)
		}
	}
}

func (e *exercise) resizesSignature(t *testing.T) {
	v := e.compile(t, 0)
	req, names := e.signed(t, v, now)
	for _, name := range names {
		value := req.Header.Get(name)
		for what, changed := range map[string]string{
			"cut at its end":      value[:len(value)-1],
			"cut at its head":     value[1:],
			"with a character":    value + "0",
			"with a leading zero": "0" + value,
			"in upper case":       strings.ToUpper(value),
			"in lower case":       strings.ToLower(value),
		} {
			if changed == value {
				continue
			}
			if _, err := verify(v, with(req, name, changed), e.Body); err == nil {
				t.Errorf("%s %s: accepted", name, what)
			}
		}
	}
}

func (e *exercise) otherSecret(t *testing.T) {
	req, _ := e.signed(t, e.compile(t, 1), now)
	_, err := verify(e.compile(t, 0), req, e.Body)
	refused(t, "another secret", err)
}

func (e *exercise) rotates(t *testing.T) {
	both := e.compile(t, 0, 1)
	for position := range 2 {
		req, _ := e.signed(t, e.compile(t, position), now)
		result, err := verify(both, req, e.Body)
		if err != nil || result.Secret != position {
			t.Errorf("signed with secret %d: %+v, %v", position, result, err)
		}
	}
	req, _ := e.signed(t, e.compile(t, 0), now)
	for _, test := range []struct {
		what   string
		until  time.Time
		reason verifier.Reason
	}{
		{"ends in a second", now.Add(time.Second), ""},
		{"ends now", now, verifier.ReasonMismatch},
		{"ended", now.Add(-time.Second), verifier.ReasonMismatch},
	} {
		old, current := e.secret(t, 0, test.until), e.secret(t, 1, time.Time{})
		v, err := e.newVerifier(verifier.Options{Secrets: []verifier.Secret{old, current}})
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		_, err = verify(v, req, e.Body)
		if test.reason == "" && err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
		if test.reason != "" {
			refused(t, test.what, err, test.reason)
		}
	}
	v, err := e.newVerifier(verifier.Options{Secrets: []verifier.Secret{e.secret(t, 0, now)}})
	if err != nil {
		t.Fatalf("only an expired secret: %v", err)
	}
	_, err = v.Begin(req)
	refused(t, "only an expired secret", err, verifier.ReasonNoActiveSecret)
}

func (e *exercise) window(t *testing.T) {
	secrets := []verifier.Secret{e.secret(t, 0, time.Time{})}
	if e.Tolerance == 0 {
		if _, err := e.newVerifier(verifier.Options{Secrets: secrets, Tolerance: time.Minute}); err == nil {
			t.Error("a tolerance was taken though the scheme has no time")
		}
		return
	}
	for _, override := range []time.Duration{0, 10 * time.Second} {
		v, err := e.newVerifier(verifier.Options{Secrets: secrets, Tolerance: override})
		if err != nil {
			t.Fatal(err)
		}
		tolerance := e.Tolerance
		if override > 0 {
			tolerance = override
		}
		for _, test := range []struct {
			age    time.Duration
			reason verifier.Reason
		}{
			{0, ""},
			{tolerance, ""},
			{-tolerance, ""},
			{tolerance + time.Second, verifier.ReasonStale},
			{-tolerance - time.Second, verifier.ReasonFuture},
			{30 * 24 * time.Hour, verifier.ReasonStale},
		} {
			req, _ := e.signed(t, v, now.Add(-test.age))
			if test.reason != "" {
				_, err := v.Begin(req)
				refused(t, "age "+test.age.String(), err, test.reason)
				continue
			}
			result, err := verify(v, req, e.Body)
			if err != nil || result.Skew != test.age || !result.Time.Equal(now.Add(-test.age)) {
				t.Errorf("age %s: %+v, %v", test.age, result, err)
			}
		}
	}
}

func (e *exercise) misuse(t *testing.T) {
	v := e.compile(t, 0)
	_, err := v.Begin(verifier.Request{Now: now})
	refused(t, "no headers at all", err, verifier.ReasonMissingHeader)
	req, _ := e.signed(t, v, now)
	check, err := v.Begin(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = check.Write(e.Body)
	if _, err := check.Finish(e.Body); err != nil {
		t.Fatal(err)
	}
	_, err = check.Finish(e.Body)
	var refusal *verifier.Error
	if !errors.As(err, &refusal) {
		t.Errorf("a second finish gave %v", err)
	}
	// A finished check must have let go of everything that later ones use.
	next, err := v.Begin(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = check.Write([]byte("late"))
	_, _ = next.Write(e.Body)
	if _, err := next.Finish(e.Body); err != nil {
		t.Errorf("after a late write to a finished check: %v", err)
	}
}
