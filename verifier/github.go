package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:  "github",
		Title: "GitHub",
		// The legacy X-Hub-Signature (SHA-1) is never read: it would be a downgrade.
		Variants: []Family{HMAC{Header: "X-Hub-Signature-256", Format: FormatPrefix, Prefix: "sha256="}},
		Facts: Facts{
			EventID:      "header X-GitHub-Delivery",
			EventType:    "header X-GitHub-Event",
			IDSigned:     No,
			ReplayGuard:  true,
			MaxBody:      25 << 20,
			Deadline:     10 * time.Second,
			Retries:      No,
			RetryHorizon: 72 * time.Hour,
			RetryNote:    "no automatic retry; redelivery by hand or API within 3 days keeps the delivery id; Enterprise Server waits 30 s",
			ContentTypes: []string{"application/json", "application/x-www-form-urlencoded"},
			Sample: Sample{
				Type: "push",
				Header: http.Header{
					"Content-Type":      {"application/json"},
					"User-Agent":        {"GitHub-Hookshot/test"},
					"X-Github-Delivery": {"{id}"},
					"X-Github-Event":    {"{type}"},
				},
				Body: `{"ref":"refs/heads/main","after":"{id}","number":{n},"repository":{"full_name":"octo-org/hello"},"sender":{"login":"octocat"}}`,
			},
			Sources: []string{
				"scheme: @octokit/webhooks-methods 6.0.0",
				"id, redelivery, deadline: github/docs, content/webhooks/using-webhooks/best-practices-for-using-webhooks.md and handling-failed-webhook-deliveries",
				"body limit: GitHub's documented payload cap of 25 MB",
				"72 h: a research note quoting GitHub's documentation, read 2026-05-02",
			},
		},
	})
}
