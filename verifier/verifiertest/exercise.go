// Package verifiertest holds the conformance suite that every verifier passes,
// also third-party ones, and the loader of vector files.
package verifiertest

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/verifier"
)

// NewFunc compiles the verifier under test. The verifier must also be a
// verifier.Signer.
type NewFunc func(verifier.Options) (verifier.Verifier, error)

// Subject is what the suite must be told about a scheme.
type Subject struct {
	// Secrets are at least two different, well-formed secrets. No error text may
	// hold one, so they are no common words.
	Secrets []string
	// Method and URL of the delivery. Default: POST and an example URL.
	Method, URL string
	// Header are headers the scheme needs besides those that Sign returns.
	Header http.Header
	// Body to sign. Default: a small JSON object with non-ASCII text in it.
	Body []byte
	// Tolerance is the scheme's own window; 0 = it has no time.
	Tolerance time.Duration
	// BodyUnsigned: the scheme does not sign the body, so changes to it pass.
	BodyUnsigned bool
}

// now is the time of every exercise: a fixed one, so that failures repeat.
var now = time.Date(2026, 7, 25, 17, 0, 0, 0, time.UTC)

// Exercise checks that a verifier accepts what it signed and fails closed on
// everything else.
func Exercise(t *testing.T, name string, newVerifier NewFunc, s Subject) {
	t.Helper()
	if len(s.Secrets) < 2 {
		t.Fatal("a subject needs two secrets")
	}
	if s.Method == "" {
		s.Method = http.MethodPost
	}
	if s.URL == "" {
		s.URL = "https://hooks.example.test/in/" + name
	}
	if s.Body == nil {
		s.Body = []byte("{\"id\":\"evt_1\",\"text\":\"gr\u00fc\u00dfe \\u00e9 1.0\"}\r\n")
	}
	e := &exercise{newVerifier: newVerifier, Subject: s}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		type check struct {
			name string
			run  func(*testing.T)
		}
		checks := []check{
			{"accepts what it signed, however the body is cut", e.accepts},
			{"refuses to be compiled without a usable secret", e.refusesNoSecret},
			{"never shows a secret in an error", e.hidesSecrets},
			{"refuses every flipped bit of the headers", e.flipsHeaders},
			{"refuses a missing, an empty and a repeated header before the body", e.breaksHeaders},
			{"refuses a signature cut short, extended and in another case", e.resizesSignature},
			{"refuses what another secret signed", e.otherSecret},
			{"takes any active secret and says which", e.rotates},
			{"keeps to its window on both sides to the second", e.window},
			{"refuses a second finish and nil headers", e.misuse},
			{"is safe for concurrent use", e.concurrent},
		}
		if !e.BodyUnsigned {
			checks = append(checks,
				check{"refuses every flipped bit of the body", e.flipsBody},
				check{"refuses a body cut short or extended", e.resizesBody})
		}
		for _, check := range checks {
			t.Run(check.name, check.run)
		}
	})
}

type exercise struct {
	newVerifier NewFunc
	Subject
}

func (e *exercise) secret(t *testing.T, i int, until time.Time) verifier.Secret {
	t.Helper()
	secret, err := verifier.NewSecret(e.Secrets[i], until)
	if err != nil {
		t.Fatalf("secret %d of the subject: %v", i, err)
	}
	return secret
}

// compile makes a verifier of the subject's secrets at these positions.
func (e *exercise) compile(t *testing.T, positions ...int) verifier.Verifier {
	t.Helper()
	var o verifier.Options
	for _, i := range positions {
		o.Secrets = append(o.Secrets, e.secret(t, i, time.Time{}))
	}
	v, err := e.newVerifier(o)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return v
}

// signed is a delivery signed by v at a time. It also returns the names of the
// headers that signing added.
func (e *exercise) signed(t *testing.T, v verifier.Verifier, at time.Time) (verifier.Request, []string) {
	t.Helper()
	signer, ok := v.(verifier.Signer)
	if !ok {
		t.Fatal("the verifier is no verifier.Signer")
	}
	req := verifier.Request{Method: e.Method, URL: e.URL, Header: e.Header.Clone(), Now: at}
	if req.Header == nil {
		req.Header = http.Header{}
	}
	added, err := signer.Sign(req, e.Body)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	var names []string
	for name, values := range added {
		if len(values) != 1 || name != http.CanonicalHeaderKey(name) {
			t.Fatalf("sign: header %s is not canonical or not single", name)
		}
		req.Header[name] = values
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Fatal("sign: no header")
	}
	slices.Sort(names)
	req.Now = now
	return req, names
}

// verify runs one delivery through v.
func verify(v verifier.Verifier, req verifier.Request, body []byte) (verifier.Result, error) {
	check, err := v.Begin(req)
	if err != nil {
		return verifier.Result{}, err
	}
	if n, err := check.Write(body); err != nil || n != len(body) {
		return verifier.Result{}, errors.New("a Write failed, which it must not")
	}
	return check.Finish(body)
}

// refused demands a refusal, of one of reasons where some are given.
func refused(t *testing.T, what string, err error, reasons ...verifier.Reason) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: accepted", what)
		return
	}
	var refusal *verifier.Error
	if !errors.As(err, &refusal) || refusal.Reason == "" {
		t.Errorf("%s: refused with %v, which is no *verifier.Error with a reason", what, err)
		return
	}
	if len(reasons) > 0 && !slices.Contains(reasons, refusal.Reason) {
		t.Errorf("%s: refused as %v, want %v", what, refusal, reasons)
	}
}

// with is req with one header replaced; no values = removed.
func with(req verifier.Request, name string, values ...string) verifier.Request {
	req.Header = req.Header.Clone()
	if len(values) == 0 {
		delete(req.Header, name)
	} else {
		req.Header[name] = values
	}
	return req
}

func (e *exercise) accepts(t *testing.T) {
	v := e.compile(t, 0)
	req, _ := e.signed(t, v, now)
	for _, size := range []int{1, 7, len(e.Body)} {
		check, err := v.Begin(req)
		if err != nil {
			t.Fatalf("begin: %v", err)
		}
		for chunk := range slices.Chunk(bytes.Clone(e.Body), max(size, 1)) {
			if n, err := check.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
			clear(chunk) // a check that kept the slice would now see zeros
		}
		result, err := check.Finish(e.Body)
		if err != nil {
			t.Fatalf("written %d bytes at a time: %v", size, err)
		}
		if result.Secret != 0 || result.Time.IsZero() != (e.Tolerance == 0) {
			t.Errorf("result %+v", result)
		}
	}
}

func (e *exercise) refusesNoSecret(t *testing.T) {
	for what, o := range map[string]verifier.Options{
		"no secret":            {},
		"an empty secret":      {Secrets: []verifier.Secret{{}}},
		"one of two empty":     {Secrets: []verifier.Secret{e.secret(t, 0, time.Time{}), {}}},
		"a negative tolerance": {Secrets: []verifier.Secret{e.secret(t, 0, time.Time{})}, Tolerance: -1},
	} {
		if v, err := e.newVerifier(o); err == nil || v != nil {
			t.Errorf("%s: compiled", what)
		}
	}
}

func (e *exercise) hidesSecrets(t *testing.T) {
	v := e.compile(t, 0, 1)
	req, names := e.signed(t, v, now)
	signature := map[string]string{}
	for _, name := range names {
		signature[name] = req.Header.Get(name)
	}
	check := func(err error) {
		if err == nil {
			return
		}
		for _, secret := range e.Secrets {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("an error shows a secret")
			}
		}
		for name, value := range signature {
			if len(value) > 24 && strings.Contains(err.Error(), value) {
				t.Errorf("an error shows the value of %s", name)
			}
		}
	}
	_, err := verify(v, req, append([]byte("x"), e.Body...))
	check(err)
	for _, name := range names {
		_, err = verify(v, with(req, name, signature[name]+"x"), e.Body)
		check(err)
	}
}

func (e *exercise) concurrent(t *testing.T) {
	v := e.compile(t, 0, 1)
	req, _ := e.signed(t, v, now)
	results := make(chan error)
	const workers, rounds = 8, 50
	for worker := range workers {
		go func() {
			body := e.Body
			if worker%2 == 1 {
				body = append(bytes.Clone(body), 'x')
			}
			var failure error
			for range rounds {
				_, err := verify(v, req, body)
				if wrong := (err == nil) != (worker%2 == 0 || e.BodyUnsigned); wrong {
					failure = errors.New("a verdict changed under concurrent use")
				}
			}
			results <- failure
		}()
	}
	for range workers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
