package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:  "cmssy",
		Title: "cmssy",
		Variants: []Family{HMAC{
			Header:    "X-Cmssy-Signature",
			Format:    FormatList,
			Field:     "v1",
			Content:   "{timestamp}.{body}",
			Timestamp: Timestamp{Field: "t", Unit: UnitMilliseconds},
		}},
		Facts: Facts{
			// The header x-cmssy-webhook-id holds the same, unsigned.
			EventID:      "json /id",
			EventType:    "header X-Cmssy-Event",
			IDSigned:     Yes,
			Tolerance:    5 * time.Minute,
			Deadline:     15 * time.Second,
			Retries:      Yes,
			RetryHorizon: 27*time.Hour + 36*time.Minute,
			RetryNote:    "8 attempts, after 1m, 5m, 30m, 2h, 5h, 10h, 10h; a longer Retry-After is honoured up to 10 h a gap; only 410 stops; 3xx counts as failure; 20 failures in a row disable the endpoint; a redelivery by hand has a new id",
			Sample: Sample{
				Type: "page.published",
				Header: http.Header{
					"Content-Type":       {"application/json"},
					"X-Cmssy-Webhook-Id": {"{id}"},
					"X-Cmssy-Event":      {"{type}"},
				},
				Body: `{"id":"{id}","event":"{type}","createdAt":"2026-01-01T00:00:00.000Z","data":{"n":{n}}}`,
			},
			Sources: []string{"everything: the scheme as given to this project"},
		},
	})
}
