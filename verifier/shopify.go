package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:  "shopify",
		Title: "Shopify",
		// The second family is that of the newer "events" deliveries.
		Variants: []Family{shopifyHeaders("X-Shopify-"), shopifyHeaders("shopify-")},
		Facts: Facts{
			EventID:   "header X-Shopify-Webhook-Id shopify-webhook-id",
			EventType: "header X-Shopify-Topic shopify-topic",
			IDSigned:  No,
			// Equal bodies under two ids are legitimate: one change, two topics.
			ReplayGuard:  false,
			Deadline:     5 * time.Second,
			Retries:      Yes,
			RetryHorizon: 4 * time.Hour,
			RetryNote:    "8 retries over 4 h with the original payload; after 8 failures in a row a subscription made through the Admin API is deleted; connect within 1 s",
			ContentTypes: []string{"application/json"},
			Sample: Sample{
				Type: "orders/create",
				Header: http.Header{
					"Content-Type":          {"application/json"},
					"X-Shopify-Webhook-Id":  {"{id}"},
					"X-Shopify-Topic":       {"{type}"},
					"X-Shopify-Shop-Domain": {"test.myshopify.com"},
					"X-Shopify-Api-Version": {"2026-04"},
				},
				Body: `{"id":{n},"email":"test@example.com","total_price":"403.00"}`,
			},
			Sources: []string{
				"scheme, required headers, both families: @shopify/shopify-api 15.0.0",
				"retries: shopify.dev/changelog/updates-to-webhook-retry-mechanism; deadline: a research note quoting Shopify's documentation, read 2026-05-02",
			},
		},
	})
}

// shopifyHeaders is Shopify's scheme under one prefix of header names. The
// metadata is not signed; its presence is demanded as Shopify's SDK does.
func shopifyHeaders(prefix string) HMAC {
	return HMAC{
		Header:   prefix + "Hmac-Sha256",
		Encoding: EncodingBase64,
		// Unsigned, so they prove nothing: without them an event cannot be told. The library also wants
		// Api-Version, which says how to read the body and is the app's to judge.
		Required: []string{prefix + "Topic", prefix + "Shop-Domain", prefix + "Webhook-Id"},
	}
}
