package verifier

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestInconsistentDeclarationsAreRefused(t *testing.T) {
	t.Parallel()
	header := Timestamp{Header: "X-T"}
	for says, scheme := range map[string]HMAC{
		"header for the signature":        {},
		`"X Sig" is not the name`:         {Header: "X Sig"},
		"unknown format":                  {Header: "X", Format: "csv"},
		"needs the prefix":                {Header: "X", Format: FormatPrefix},
		"two field names":                 {Header: "X", Format: FormatList, Field: "t", Content: "{timestamp}{body}", Timestamp: Timestamp{Field: "t"}},
		"bare or have a field name":       {Header: "X", Format: FormatList, Bare: true, Field: "v1"},
		"separator and assignment":        {Header: "X", Format: FormatList, Separator: ",", Assign: ","},
		"unknown encoding":                {Header: "X", Encoding: "base32"},
		"unknown digest":                  {Header: "X", Digest: "md5"},
		"unknown key encoding":            {Header: "X", Key: "rot13"},
		"unknown placeholder {bodi}":      {Header: "X", Content: "{bodi}"},
		"unknown placeholder {header.}":   {Header: "X", Content: "{header.}{body}"},
		"{body} may occur only once":      {Header: "X", Content: "{body}{body}"},
		`a "{" without its "}"`:           {Header: "X", Content: "{body"},
		`a "}" without its "{"`:           {Header: "X", Content: "a}{body}"},
		"unknown timestamp unit":          {Header: "X", Content: "{timestamp}", Timestamp: Timestamp{Header: "X-T", Unit: "us"}},
		"not in both":                     {Header: "X", Format: FormatList, Timestamp: Timestamp{Header: "X-T", Field: "t"}},
		"needs format list":               {Header: "X", Content: "{timestamp}", Timestamp: Timestamp{Field: "t"}},
		"1 to 14 digits":                  {Header: "X", Content: "{timestamp}", Timestamp: Timestamp{Header: "X-T", Digits: 15}},
		"header for the timestamp":        {Header: "X", Content: "{timestamp}", Timestamp: Timestamp{Header: "X T"}},
		"it would protect nothing":        {Header: "X", Timestamp: header},
		"told where the timestamp is":     {Header: "X", Content: "{timestamp}{body}"},
		"told which header has the id":    {Header: "X", Content: "{id}{body}"},
		"the id is not part":              {Header: "X", ID: ID{Header: "X-Id"}},
		"the pattern of the id":           {Header: "X", Content: "{id}", ID: ID{Header: "X-Id", Pattern: "("}},
		"not the name of a required":      {Header: "X", Required: []string{"A B"}},
		"a tolerance has no effect":       {Header: "X", Tolerance: time.Minute},
		"the tolerance is negative":       {Header: "X", Content: "{timestamp}", Timestamp: header, Tolerance: -1},
		"gives a key of 3 bytes, the sch": {Header: "X", KeySize: 32},
	} {
		v, err := scheme.New(Options{Secrets: []Secret{mustSecret(t, "abc")}})
		if err == nil || v != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error with %q, got %v", says, err)
		}
	}
}

func TestTheErrorNamesTheSecretByPosition(t *testing.T) {
	t.Parallel()
	_, err := standardWebhooks("Webhook-").New(Options{Secrets: []Secret{mustSecret(t, "whsec_YWI="), mustSecret(t, "no!good")}})
	if err == nil || !strings.Contains(err.Error(), "secret 2 of 2") || strings.Contains(err.Error(), "good") {
		t.Errorf("%v", err)
	}
}

// begin compiles a preset with one secret and begins a delivery.
func begin(t testing.TB, name, secret string, header http.Header, now time.Time) (Check, error) {
	t.Helper()
	p, ok := LookupPreset(name)
	if !ok {
		t.Fatal("no such preset")
	}
	v, err := p.New(Options{Secrets: []Secret{mustSecret(t, secret)}})
	if err != nil {
		t.Fatal(err)
	}
	return v.Begin(Request{Method: "POST", Header: header, Now: now})
}

func TestBeginRefusesHopelessDeliveriesBeforeTheBody(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_785_000_000, 0)
	hex, b64 := strings.Repeat("0a", 32), strings.Repeat("A", 43)+"="
	demoKey := strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		preset, secret string
		header         http.Header
		want           Reason
	}{
		"the digest is short":         {"github", "s", http.Header{"X-Hub-Signature-256": {"sha256=" + hex[1:]}}, ReasonMalformedHeader},
		"the digest is in upper case": {"github", "s", http.Header{"X-Hub-Signature-256": {"sha256=" + strings.ToUpper(hex)}}, ReasonMalformedHeader},
		"the prefix is missing":       {"github", "s", http.Header{"X-Hub-Signature-256": {hex}}, ReasonMalformedHeader},
		"only SHA-1 is there":         {"github", "s", http.Header{"X-Hub-Signature": {"sha1=" + hex[:40]}}, ReasonMissingHeader},
		"hex where base64 belongs":    {"shopify", "s", http.Header{"X-Shopify-Hmac-Sha256": {hex}}, ReasonMissingHeader},
		"the delivery id has capitals": {"demo-webhook-v1", demoKey, http.Header{
			"X-Demo-Signature": {hex}, "X-Demo-Timestamp": {"1785000000"}, "X-Demo-Delivery": {"A"},
		}, ReasonMalformedHeader},
		"the timestamp has 11 digits": {"demo-webhook-v1", demoKey, http.Header{
			"X-Demo-Signature": {hex}, "X-Demo-Timestamp": {"17850000000"}, "X-Demo-Delivery": {"a"},
		}, ReasonMalformedHeader},
		"the id has the separator in it": {"standard-webhooks", "YWI=", http.Header{
			"Webhook-Signature": {"v1," + b64}, "Webhook-Timestamp": {"1785000000"}, "Webhook-Id": {"a.b"},
		}, ReasonMalformedHeader},
		"the time is old": {"stripe", "s", http.Header{"Stripe-Signature": {"t=1784999699,v1=" + hex}}, ReasonStale},
		"the time is new": {"stripe", "s", http.Header{"Stripe-Signature": {"t=1785000301,v1=" + hex}}, ReasonFuture},
	} {
		check, err := begin(t, test.preset, test.secret, test.header, now)
		var refusal *Error
		if check != nil || !errors.As(err, &refusal) || refusal.Reason != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), hex[:16]) || strings.Contains(err.Error(), b64[:16])) {
			t.Errorf("%s: the error shows the signature: %v", name, err)
		}
	}
}

// TestOneDigestHasOneText: a lenient decoder would take several texts for one
// digest, and so let one delivery pass under several headers.
func TestOneDigestHasOneText(t *testing.T) {
	t.Parallel()
	p, _ := LookupPreset("standard-webhooks")
	v, err := p.New(Options{Secrets: []Secret{mustSecret(t, "whsec_YWI=")}})
	if err != nil {
		t.Fatal(err)
	}
	req := Request{Header: http.Header{"Webhook-Id": {"msg_1"}}, Now: time.Unix(1_785_000_000, 0)}
	signed, err := v.(Signer).Sign(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := signed.Get("Webhook-Signature")
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.IndexByte(alphabet, good[len(good)-2])
	for what, value := range map[string]string{
		"other trailing bits": good[:len(good)-2] + string(alphabet[last^1]) + "=",
		"without padding":     strings.TrimSuffix(good, "="),
		"more padding":        good + "=",
		"a line break":        good[:10] + "\n" + good[10:],
		"spaces around":       " " + good + " \t",
		"URL alphabet":        strings.NewReplacer("+", "-", "/", "_").Replace(good),
	} {
		header := signed.Clone()
		header.Set("Webhook-Signature", value)
		check, err := v.Begin(Request{Header: header, Now: req.Now})
		if err == nil {
			_, err = check.Finish(nil)
		}
		// An entry between spaces is the same entry: the list's separator, no
		// other form of the digest.
		if allowed := value == good || what == "spaces around"; allowed {
			continue
		}
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestAnEmptyBodyIsABody(t *testing.T) {
	t.Parallel()
	for _, p := range Presets() {
		secret := "whsec_YWI="
		if p.Name == "demo-webhook-v1" {
			secret = strings.Repeat("ab", 32)
		}
		v, err := p.New(Options{Secrets: []Secret{mustSecret(t, secret)}})
		if err != nil {
			t.Fatal(err)
		}
		req := Request{Header: p.Sample.Header.Clone(), Now: time.Unix(1_785_000_000, 0)}
		for name := range req.Header {
			req.Header.Set(name, "x")
		}
		signed, err := v.(Signer).Sign(req, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range signed {
			req.Header[name] = values
		}
		check, err := v.Begin(req)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if _, err := check.Finish(nil); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestEverySignatureOfAListIsTried(t *testing.T) {
	t.Parallel()
	p, _ := LookupPreset("stripe")
	v, err := p.New(Options{Secrets: []Secret{mustSecret(t, "s")}})
	if err != nil {
		t.Fatal(err)
	}
	req := Request{Now: time.Unix(1_785_000_000, 0)}
	signed, _ := v.(Signer).Sign(req, []byte("{}"))
	stamp, good, _ := strings.Cut(signed.Get("Stripe-Signature"), ",")
	bad := ",v1=" + strings.Repeat("0", 64)
	for at := range 63 { // 63 signatures and the time
		value := stamp + strings.Repeat(bad, at) + "," + good + strings.Repeat(bad, 62-at)
		req.Header = http.Header{"Stripe-Signature": {value}}
		check, err := v.Begin(req)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(check, "{}")
		if _, err := check.Finish(nil); err != nil {
			t.Fatalf("position %d: %v", at, err)
		}
	}
}

func BenchmarkStripe(b *testing.B) {
	p, _ := LookupPreset("stripe")
	v, err := p.New(Options{Secrets: []Secret{mustSecret(b, "whsec_test")}})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(strings.Repeat("x", 2048))
	req := Request{Now: time.Unix(1_785_000_000, 0)}
	if req.Header, err = v.(Signer).Sign(req, body); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		check, err := v.Begin(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = check.Write(body)
		if _, err := check.Finish(body); err != nil {
			b.Fatal(err)
		}
	}
}
