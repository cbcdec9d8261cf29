package verifier

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryPresetIsComplete(t *testing.T) {
	t.Parallel()
	all := Presets()
	if !slices.IsSortedFunc(all, func(a, b *Preset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted by name")
	}
	for _, p := range all {
		if found, ok := LookupPreset(p.Name); !ok || found != p {
			t.Errorf("%s: not found by its name", p.Name)
		}
		if _, err := os.Stat("testdata/" + p.Name + ".json"); err != nil {
			t.Errorf("%s: no vectors: %v", p.Name, err)
		}
		if p.Title == "" || len(p.Variants) == 0 || p.EventID == "" || p.MaxBody <= 0 || len(p.Sources) == 0 {
			t.Errorf("%s: title, variants, event id, body limit or sources are missing", p.Name)
		}
		if !slices.Contains([]string{"bytes", "json", "id"}, strings.Fields(p.Compare)[0]) {
			t.Errorf("%s: compare %q", p.Name, p.Compare)
		}
		if p.ReplayGuard && p.IDSigned != No {
			t.Errorf("%s: a replay guard is for unsigned ids", p.Name)
		}
		for _, selector := range []string{p.EventID, p.EventType} {
			if selector != "" && !strings.HasPrefix(selector, "header ") && !strings.HasPrefix(selector, "json /") {
				t.Errorf("%s: selector %q", p.Name, selector)
			}
		}
		if _, err := p.New(Options{}); err == nil {
			t.Errorf("%s: compiled without a secret", p.Name)
		}
		sampleIsComplete(t, p)
	}
}

// sampleIsComplete demands that the sample has the id and type where the
// selectors look, and is JSON.
func sampleIsComplete(t *testing.T, p *Preset) {
	t.Helper()
	body := strings.NewReplacer("{id}", "evt-1", "{type}", p.Sample.Type, "{n}", "1").Replace(p.Sample.Body)
	var fields map[string]any
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Errorf("%s: the sample's body: %v", p.Name, err)
	}
	for name := range p.Sample.Header {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("%s: the sample's header %s is not canonical", p.Name, name)
		}
	}
	for selector, want := range map[string]string{p.EventID: "evt-1", p.EventType: p.Sample.Type} {
		if pointer, ok := strings.CutPrefix(selector, "json /"); ok && fields[pointer] != want {
			t.Errorf("%s: the sample has %v at %s", p.Name, fields[pointer], selector)
		}
		if names, ok := strings.CutPrefix(selector, "header "); ok && p.Sample.Header.Get(strings.Fields(names)[0]) == "" {
			t.Errorf("%s: the sample has no %s", p.Name, selector)
		}
	}
}

func TestTheNearestPresetIsFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gihub": "github", "GitHub": "github", "git-hub": "github", "githubb": "github", "strpie": "stripe", "slak": "slack",
		"standardwebhooks": "standard-webhooks", "standard_webhook": "standard-webhooks", "demo-webhook": "demo-webhook-v1",
		"demo-webhook-v2": "demo-webhook-v1", "svx": "svix", "Shopfy": "shopify", "": "", "-": "", "quickbooks": "", "zzz": "", strings.Repeat("github", 40): "",
	} {
		if got := NearestPreset(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if _, ok := LookupPreset("GitHub"); ok {
		t.Error("a lookup is exact")
	}
}

// deliver signs under one family of names and verifies with the whole preset,
// after change has been at the headers.
func deliver(t *testing.T, preset string, signAs HMAC, required []string, change func(http.Header)) error {
	t.Helper()
	p, _ := LookupPreset(preset)
	o := Options{Secrets: []Secret{mustSecret(t, "whsec_YWI=")}}
	v, err := p.New(o)
	if err != nil {
		t.Fatal(err)
	}
	one, err := signAs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	req := Request{Header: http.Header{}, Now: time.Unix(1_785_000_000, 0)}
	for _, name := range required {
		req.Header.Set(name, "x")
	}
	signed, err := one.(Signer).Sign(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range signed {
		req.Header[name] = values
	}
	change(req.Header)
	check, err := v.Begin(req)
	if err != nil {
		return err
	}
	_, err = check.Finish(nil)
	return err
}

func TestAVariantIsChosenByItsSignatureAndNeverLeft(t *testing.T) {
	t.Parallel()
	neutral, svix := standardWebhooks("Webhook-"), standardWebhooks("Svix-")
	for name, test := range map[string]struct {
		signAs HMAC
		change func(http.Header)
		want   Reason
	}{
		"the first":                     {svix, func(http.Header) {}, ""},
		"the second":                    {neutral, func(http.Header) {}, ""},
		"both, the second incomplete":   {svix, func(h http.Header) { h.Set("Webhook-Signature", "v1,x") }, ""},
		"a bad first, a good second":    {neutral, func(h http.Header) { h.Set("Svix-Signature", "v1,x") }, ReasonMissingHeader},
		"an empty first":                {neutral, func(h http.Header) { h.Set("Svix-Signature", "") }, ReasonMissingHeader},
		"an unsigned id of the first":   {neutral, func(h http.Header) { h.Set("Svix-Id", "other") }, ReasonMalformedHeader},
		"an unsigned time of the first": {neutral, func(h http.Header) { h.Set("Svix-Timestamp", "1") }, ReasonMalformedHeader},
		"none":                          {svix, func(h http.Header) { h.Del("Svix-Signature") }, ReasonMissingHeader},
		"ids of the first, signature of the second": {svix, func(h http.Header) {
			h["Webhook-Signature"] = h["Svix-Signature"]
			h.Del("Svix-Signature")
		}, ReasonMalformedHeader},
	} {
		err := deliver(t, "svix", test.signAs, nil, test.change)
		var refusal *Error
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &refusal) || refusal.Reason != test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if err := deliver(t, "standard-webhooks", svix, nil, func(http.Header) {}); err == nil {
		t.Error("standard-webhooks took svix names")
	}
}

func TestShopifyDemandsItsMetadata(t *testing.T) {
	t.Parallel()
	for _, scheme := range []HMAC{shopifyHeaders("X-Shopify-"), shopifyHeaders("shopify-")} {
		if err := deliver(t, "shopify", scheme, scheme.Required, func(http.Header) {}); err != nil {
			t.Error(err)
		}
		for _, name := range scheme.Required {
			for reason, change := range map[Reason]func(http.Header){
				ReasonMissingHeader:  func(h http.Header) { h.Del(name) },
				ReasonRepeatedHeader: func(h http.Header) { h.Add(name, "y") },
			} {
				err := deliver(t, "shopify", scheme, scheme.Required, change)
				var refusal *Error
				if !errors.As(err, &refusal) || refusal.Reason != reason {
					t.Errorf("%s: %v, want %s", name, err, reason)
				}
			}
		}
	}
	mixed := func(h http.Header) { h.Set("X-Shopify-Webhook-Id", "other") }
	if err := deliver(t, "shopify", shopifyHeaders("shopify-"), shopifyHeaders("shopify-").Required, mixed); err == nil {
		t.Error("an id of the other family was taken along")
	}
}

func TestNoneAcceptsAndTakesNoSecret(t *testing.T) {
	t.Parallel()
	v, err := None{}.New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	check, err := v.Begin(Request{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := check.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	if result, err := check.Finish(nil); err != nil || result.Secret != -1 {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := (None{}).New(Options{Secrets: []Secret{mustSecret(t, "a")}}); err == nil {
		t.Error("a secret without effect was taken")
	}
}
