package verifier

import (
	"net/http"
	"time"
)

func init() {
	register(&Preset{
		Name:  "demo-webhook-v1",
		Title: "Demo Webhook v1",
		Variants: []Family{HMAC{
			Header:    "X-Demo-Signature",
			Key:       KeyHex,
			KeySize:   32,
			Content:   "demo-webhook-v1\n{id}\n{timestamp}\n{body}",
			Timestamp: Timestamp{Header: "X-Demo-Timestamp", Digits: 10},
			ID:        ID{Header: "X-Demo-Delivery", Pattern: `[a-z0-9-]{1,64}`},
		}},
		Facts: Facts{
			EventID:   "json /event_id",
			EventType: "json /kind",
			IDSigned:  Yes,
			MaxBody:   8192,
			Tolerance: 5 * time.Minute,
			Sample: Sample{
				Type:   "increment",
				Header: http.Header{"Content-Type": {"application/json"}},
				Body:   `{"event_id":"{id}","kind":"{type}","value":{n}}`,
			},
			Sources: []string{"everything: the scheme as given to this project"},
		},
	})
}
