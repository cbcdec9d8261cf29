package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:  "stripe",
		Title: "Stripe",
		// The key is the whole "whsec_..." text, not what it would decode to. v0
		// entries are ignored: Stripe puts them there for tests only.
		Variants: []Family{HMAC{
			Header:    "Stripe-Signature",
			Format:    FormatList,
			Field:     "v1",
			Content:   "{timestamp}.{body}",
			Timestamp: Timestamp{Field: "t"},
		}},
		Facts: Facts{
			EventID:   "json /id",
			EventType: "json /type",
			IDSigned:  Yes,
			// A retry may carry another pending_webhooks: it counts the endpoints that have not answered yet.
			Compare:      "json ignore /pending_webhooks",
			Tolerance:    5 * time.Minute,
			Retries:      Yes,
			RetryHorizon: 72 * time.Hour,
			RetryNote:    "up to 3 days with growing gaps (live), 3 times over a few hours (sandbox); an endpoint may be disabled after sustained failure; a manual resend keeps the event id and is possible for 15 (dashboard) to 30 days (CLI)",
			ContentTypes: []string{"application/json"},
			Sample: Sample{
				Type:   "payment_intent.succeeded",
				Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
				Body:   `{"id":"{id}","object":"event","type":"{type}","livemode":false,"data":{"object":{"id":"pi_test","amount":{n}}}}`,
			},
			Sources: []string{
				"scheme, id, type, window: stripe 23.1.0 (its window looks at the past only)",
				"pending_webhooks: the event object in Stripe's API reference",
				"retries: a research note quoting Stripe's documentation, read 2026-05-02",
			},
		},
	})
}
