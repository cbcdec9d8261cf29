package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:  "svix",
		Title: "Svix",
		// Some senders on Svix use the neutral names; the SDK takes either.
		Variants: []Family{standardWebhooks("Svix-"), standardWebhooks("Webhook-")},
		Facts: Facts{
			EventID:      "header svix-id webhook-id",
			IDSigned:     Yes,
			Tolerance:    5 * time.Minute,
			Deadline:     15 * time.Second,
			Retries:      Yes,
			RetryHorizon: 27*time.Hour + 35*time.Minute + 5*time.Second,
			RetryNote:    "after 5s, 5m, 30m, 2h, 5h, 10h, 10h (the open server's defaults); reads Retry-After; an endpoint that fails for 5 days is disabled; resend by hand exists",
			ContentTypes: []string{"application/json"},
			Sample: Sample{
				Type:   "user.created",
				Header: http.Header{"Content-Type": {"application/json"}, "Svix-Id": {"{id}"}},
				Body:   `{"type":"{type}","data":{"n":{n}}}`,
			},
			Sources: []string{
				"scheme, window, both families of names: svix 2.5.0",
				"deadline, disabling: docs.svix.com/retries; gaps: svix/svix-webhooks, server/svix-server/config.default.toml",
			},
		},
	})
}
