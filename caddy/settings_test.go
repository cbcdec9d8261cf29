package caddy

import (
	"testing"
	"time"

	"github.com/einlass/einlass/verifier"
)

func TestAnswerWithinKeepsAMarginBelowTheSendersDeadline(t *testing.T) {
	t.Parallel()
	for deadline, want := range map[time.Duration]time.Duration{
		0:                8 * time.Second,
		3 * time.Second:  2500 * time.Millisecond,
		5 * time.Second:  4500 * time.Millisecond,
		10 * time.Second: 9 * time.Second,
		15 * time.Second: 13500 * time.Millisecond,
		time.Second:      500 * time.Millisecond,
	} {
		if got := answerWithin(deadline); got != want {
			t.Errorf("deadline %s: got %s, want %s", deadline, got, want)
		}
	}
}

func TestEveryPresetIsACompleteSource(t *testing.T) {
	t.Parallel()
	for _, p := range verifier.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			s, err := new(Handler).resolve(p.Name, p.Facts)
			if err != nil {
				t.Fatalf("one line is not a complete gate: %v", err)
			}
			if s.source != p.Name || s.maxBody <= 0 || s.policy.Lease < s.forwardTimeout+leaseMinMargin {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestTheReplayGuardIsOnWhereTheIDIsAnUnsignedHeader(t *testing.T) {
	t.Parallel()
	on, off := true, false
	secret, err := verifier.NewSecret("s3cret", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	scheme := func(h verifier.HMAC) verifier.Verifier {
		v, err := h.New(verifier.Options{Secrets: []verifier.Secret{secret}})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	body := scheme(verifier.HMAC{Header: "X-Sig"})
	withID := scheme(verifier.HMAC{Header: "X-Sig", Content: "{header.X-Id}.{body}"})
	for name, c := range map[string]struct {
		handler Handler
		facts   verifier.Facts
		want    bool
	}{
		"the sender's own default":         {Handler{}, verifier.Facts{EventID: "header X-Id", ReplayGuard: true}, true},
		"the sender's own default, off":    {Handler{}, verifier.Facts{EventID: "header X-Id"}, false},
		"a header that is not signed":      {Handler{EventID: "header X-Id", verifier: body}, verifier.Facts{}, true},
		"a header that is signed":          {Handler{EventID: "header X-Id", verifier: withID}, verifier.Facts{}, false},
		"in the signed body":               {Handler{EventID: "json /id", verifier: body}, verifier.Facts{}, false},
		"another header than the preset's": {Handler{EventID: "header X-Other", verifier: withID}, verifier.Facts{EventID: "json /id"}, true},
		"nothing is signed":                {Handler{EventID: "header X-Id", verifier: verifier.None{}}, verifier.Facts{}, false},
		"the operator's word, off":         {Handler{EventID: "header X-Id", verifier: body, ReplayGuard: &off}, verifier.Facts{}, false},
		"the operator's word, on":          {Handler{EventID: "json /id", verifier: body, ReplayGuard: &on}, verifier.Facts{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := c.handler.resolve("test", c.facts)
			if err != nil || s.guard != c.want {
				t.Errorf("got %v, %v, want %v", s.guard, err, c.want)
			}
		})
	}
}
