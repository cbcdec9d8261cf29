package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:     "standard-webhooks",
		Title:    "Standard Webhooks",
		Variants: []Family{standardWebhooks("Webhook-")},
		Facts: Facts{
			EventID:      "header webhook-id",
			IDSigned:     Yes,
			Tolerance:    5 * time.Minute,
			Deadline:     15 * time.Second,
			Retries:      Yes,
			RetryHorizon: 75*time.Hour + 35*time.Minute + 5*time.Second,
			RetryNote:    "the specification's example: after 5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h; 410 asks to disable the endpoint; 429, 502, 504 and Retry-After to slow down; senders differ",
			ContentTypes: []string{"application/json"},
			Sample: Sample{
				Type:   "user.created",
				Header: http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {"{id}"}},
				Body:   `{"type":"{type}","timestamp":"2026-01-01T00:00:00Z","data":{"n":{n}}}`,
			},
			Sources: []string{
				"standard-webhooks/standard-webhooks, spec/standard-webhooks.md: scheme, id, retries; 15 to 30 s is its recommended time-out",
				"window of 300 s: standardwebhooks 1.1.1",
			},
		},
	})
}

// standardWebhooks is the scheme of the Standard Webhooks specification under
// one prefix of header names. Of its list only v1 counts: v1a is the asymmetric
// signature, which needs another kind of key.
func standardWebhooks(prefix string) HMAC {
	return HMAC{
		Header:    prefix + "Signature",
		Format:    FormatList,
		Separator: " ",
		Assign:    ",",
		Field:     "v1",
		Encoding:  EncodingBase64,
		Key:       KeyWhsec,
		Content:   "{id}.{timestamp}.{body}",
		Timestamp: Timestamp{Header: prefix + "Timestamp"},
		// The specification forbids the dot, which separates the signed parts.
		ID: ID{Header: prefix + "Id", Pattern: `[!-\-/-~]{1,256}`},
	}
}
