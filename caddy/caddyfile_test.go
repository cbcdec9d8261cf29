package caddy

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestWrongCaddyfiles holds that each mistake is refused with its line and with what to write instead.
func TestWrongCaddyfiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		text string
		want []string
	}{
		{"no verifier", "webhook_gate", []string{":1", "verify is missing", "webhook_gate /stripe stripe {env."}},
		{"no secret", "webhook_gate github", []string{":1", "no secret", "secret {env."}},
		{"empty secret", `webhook_gate github ""`, []string{":1", "secret 1"}},
		{"blank secret", "webhook_gate {\n verify github {\n secret \"  \"\n }\n}", []string{"secret 1"}},
		{"unknown preset", "webhook_gate gihub s3cret", []string{":1", `"gihub"`, "did you mean `github`"}},
		{"unknown word", "webhook_gate github s3cret {\n max_bodi 1MiB\n}", []string{":2", "max_bodi", "did you mean `max_body`"}},
		{"unknown word of a verifier", "webhook_gate {\n verify github s3cret {\n tolerane 5m\n }\n}", []string{":3", "did you mean `tolerance`"}},
		{"a word of a later version", "webhook_gate github s3cret {\n inbox always\n}", []string{":2", "inbox is not in this version"}},
		{"a word twice", "webhook_gate github s3cret {\n wait 1s\n wait 2s\n}", []string{":3", "wait already specified"}},
		{"verify twice", "webhook_gate github s3cret {\n verify stripe x\n}", []string{":2", "verify already specified"}},
		{"malformed whsec", "webhook_gate standard-webhooks whsec_!!!!", []string{":1", "secret 1", "base64"}},
		{"malformed hex key", "webhook_gate demo-webhook-v1 xyz", []string{":1", "hex"}},
		{"until is no time", "webhook_gate {\n verify github {\n secret s3cret until tomorrow\n }\n}", []string{"tomorrow", "2026-12-31T00:00:00Z"}},
		{"two secrets on one secret line", "webhook_gate {\n verify github {\n secret one two\n }\n}", []string{":3", "line of its own"}},
		{"lease too short", "webhook_gate github s3cret {\n forward_timeout 60s\n lease 30s\n}", []string{"lease 30s", "write `lease 1m5s`"}},
		{"no duration", "webhook_gate github s3cret {\n wait soon\n}", []string{":2", "wait 30s"}},
		{"no size", "webhook_gate github s3cret {\n max_body big\n}", []string{":2", "max_body 1MiB"}},
		{"confirm of no kind", "webhook_gate github s3cret {\n confirm later\n}", []string{":2", `confirm "later"`, "confirm response", "confirm callback http://"}},
		{"confirm callback without a URL", "webhook_gate github s3cret {\n confirm callback\n}", []string{":2", "confirm callback http://127.0.0.1:9081"}},
		{"confirm callback with two", "webhook_gate github s3cret {\n confirm callback http://127.0.0.1:1 http://127.0.0.1:2\n}", []string{":2", "confirm callback <URL>"}},
		{"confirm response with a URL", "webhook_gate github s3cret {\n confirm response http://127.0.0.1:1\n}", []string{":2", "confirm callback <URL>"}},
		{"confirm callback with a path only", "webhook_gate github s3cret {\n confirm callback /confirm\n}", []string{":2", "confirm callback: not a URL"}},
		{"confirm callback without a scheme", "webhook_gate github s3cret {\n confirm callback 127.0.0.1:9081\n}", []string{":2", "confirm callback: not a URL"}},
		{"confirm callback of another scheme", "webhook_gate github s3cret {\n confirm callback ftp://127.0.0.1\n}", []string{":2", "confirm callback: not a URL"}},
		{"confirm callback with a query", "webhook_gate github s3cret {\n confirm callback http://127.0.0.1:1/?a=1\n}", []string{":2", "the URL must have no query"}},
		{"confirm callback with a fragment", "webhook_gate github s3cret {\n confirm callback http://127.0.0.1:1/#a\n}", []string{":2", "confirm callback: not a URL"}},
		{"confirm callback with a password", "webhook_gate github s3cret {\n confirm callback http://user:s3cret@127.0.0.1:1\n}", []string{":2", "confirm callback: not a URL"}},
		{"confirm twice", "webhook_gate github s3cret {\n confirm response\n confirm response\n}", []string{":3", "confirm already specified"}},
		{"outcome with a password", "webhook_gate github s3cret {\n outcome http://user:s3cret@127.0.0.1:1/\n}", []string{":2", "outcome: not a URL"}},
		{"outcome without a scheme", "webhook_gate github s3cret {\n outcome app:3000/outcome\n}", []string{":2", "outcome: not a URL"}},
		{"outcome with two URLs", "webhook_gate github s3cret {\n outcome http://a/ http://b/\n}", []string{":2", "outcome takes exactly one"}},
		{"in_doubt ask without outcome", "webhook_gate github s3cret {\n in_doubt ask\n}", []string{"in_doubt ask", "outcome http://127.0.0.1:3000/webhook-outcome"}},
		{"in_doubt hold with outcome", "webhook_gate github s3cret {\n in_doubt hold\n outcome http://127.0.0.1:1/\n}", []string{"outcome is asked only with `in_doubt ask`", "`in_doubt hold`"}},
		{"in_doubt redeliver with outcome", "webhook_gate github s3cret {\n outcome http://127.0.0.1:1/\n in_doubt redeliver\n}", []string{"outcome is asked only with `in_doubt ask`"}},
		{"in_doubt of no kind", "webhook_gate github s3cret {\n in_doubt guess\n}", []string{":2", "in_doubt ask", "in_doubt redeliver", "in_doubt hold"}},
		{"an odd selector", "webhook_gate github s3cret {\n event_id body id\n}", []string{"event_id"}},
		{"compare of no kind", "webhook_gate github s3cret {\n compare text\n}", []string{"compare"}},
		{"events without types", "webhook_gate github s3cret {\n events\n}", []string{"events <type>"}},
		{"otherwise of no kind", "webhook_gate github s3cret {\n events push {\n otherwise drop\n }\n}", []string{"otherwise acknowledge"}},
		{"a header that must not be kept", "webhook_gate github s3cret {\n receipt_headers Set-Cookie\n}", []string{"Set-Cookie"}},
		{"public_url with a path", "webhook_gate github s3cret {\n public_url https://example.com/hooks\n}", []string{"scheme, host and port only"}},
		{"hmac without a header", "webhook_gate hmac s3cret", []string{":1", "header <name>"}},
		{"hmac with an unknown digest", "webhook_gate {\n verify hmac s3cret {\n header X-Sig\n digest md5\n }\n}", []string{"md5"}},
		{"none with a secret", "webhook_gate none s3cret", []string{":1", "takes no arguments"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := new(Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(c.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "!!!!") {
				t.Errorf("error %q shows the secret", err)
			}
		})
	}
}

func TestWrongGlobalOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"unknown store", "webhook_gate {\n store redis\n}", "store bolt"},
		{"the store of a later version", "webhook_gate {\n store postgres x\n}", "not in this version"},
		{"two paths", "webhook_gate {\n store bolt a b\n}", "takes one path"},
		{"a word of a later version", "webhook_gate {\n in_flight_bytes 1MiB\n}", "not in this version"},
		{"unknown word", "webhook_gate {\n stor bolt\n}", "did you mean `store`"},
		{"store twice", "webhook_gate {\n store bolt\n store bolt\n}", "already specified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := new(App).UnmarshalCaddyfile(caddyfile.NewTestDispenser(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
