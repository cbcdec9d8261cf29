package caddy

import (
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
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

func TestHowGateAndAppAgreeOnAnOutcome(t *testing.T) {
	t.Setenv("TEST_APP", "app.test:3000")
	t.Setenv("TEST_EMPTY", "")
	t.Setenv("TEST_NO_URL", "app test")
	facts := verifier.Facts{EventID: "json /id"}
	for name, c := range map[string]struct {
		handler  Handler
		callback string
		outcome  string
		inDoubt  dedup.InDoubtPolicy
	}{
		"nothing said":                {Handler{}, "", "", dedup.Redeliver},
		"response":                    {Handler{Confirm: "response", InDoubt: "redeliver"}, "", "", dedup.Redeliver},
		"hold":                        {Handler{InDoubt: "hold"}, "", "", dedup.HoldForPerson},
		"outcome is asked by default": {Handler{Outcome: "http://a/o"}, "", "http://a/o", dedup.Ask},
		"ask":                         {Handler{Outcome: "http://a/o?x=1", InDoubt: "ask"}, "", "http://a/o?x=1", dedup.Ask},
		"callback":                    {Handler{Confirm: "callback https://a:1/c"}, "https://a:1/c", "", dedup.Redeliver},
		"placeholders":                {Handler{Confirm: "callback http://{env.TEST_APP}/c", Outcome: "http://{env.TEST_APP}/o"}, "http://app.test:3000/c", "http://app.test:3000/o", dedup.Ask},
		"a placeholder in the path":   {Handler{Confirm: "callback http://x/{env.TEST_APP}"}, "http://x/app.test:3000", "", dedup.Redeliver},
	} {
		s, err := c.handler.resolve("test", facts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		callback, outcome := "", ""
		if s.callback != nil {
			callback = s.callback.String()
		}
		if a, ok := s.policy.Asker.(*asker); ok {
			outcome = a.at.String()
		}
		if callback != c.callback || outcome != c.outcome || s.policy.InDoubt != c.inDoubt {
			t.Errorf("%s: got %q, %q, %v", name, callback, outcome, s.policy.InDoubt)
		}
	}
	for name, c := range map[string]struct {
		handler Handler
		want    string
	}{
		"callback from an unset variable":    {Handler{Confirm: "callback {env.TEST_NOT_SET}"}, "env.TEST_NOT_SET"},
		"callback with a host that is unset": {Handler{Confirm: "callback http://{env.TEST_NOT_SET}:9081"}, "env.TEST_NOT_SET"},
		"outcome from an unset variable":     {Handler{Outcome: "{env.TEST_NOT_SET}"}, "env.TEST_NOT_SET"},
		"outcome from an empty variable":     {Handler{Outcome: "{env.TEST_EMPTY}"}, "env.TEST_EMPTY"},
		"outcome from a missing file":        {Handler{Outcome: "{file./no/such/file}"}, "outcome"},
		"outcome from no URL":                {Handler{Outcome: "http://{env.TEST_NO_URL}/"}, "outcome: not a URL"},
		"callback from no URL":               {Handler{Confirm: "callback {env.TEST_APP}"}, "confirm callback: not a URL"},
		"a placeholder of a request":         {Handler{Outcome: "http://{http.request.host}/"}, "outcome"},
	} {
		if _, err := c.handler.resolve("test", facts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
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
