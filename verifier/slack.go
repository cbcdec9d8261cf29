package verifier

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

func init() {
	register(&Preset{
		Name:  "slack",
		Title: "Slack",
		Variants: []Family{HMAC{
			Header:    "X-Slack-Signature",
			Format:    FormatPrefix,
			Prefix:    "v0=",
			Content:   "v0:{timestamp}:{body}",
			Timestamp: Timestamp{Header: "X-Slack-Request-Timestamp"},
		}},
		Facts: Facts{
			EventID:      "json /event_id",
			EventType:    "json /type",
			IDSigned:     Yes,
			Tolerance:    5 * time.Minute,
			Deadline:     3 * time.Second,
			Retries:      Yes,
			RetryHorizon: 24 * time.Hour,
			RetryNote:    "3 retries: about at once, after 1 min, after 5 min; apps with delayed events: hourly for 24 h; X-Slack-No-Retry: 1 on a failure stops them",
			ContentTypes: []string{"application/json", "application/x-www-form-urlencoded"},
			Handshake:    &Handshake{Name: "url_verification", Signed: true, Answer: answerURLVerification},
			Sample: Sample{
				Type:   "event_callback",
				Header: http.Header{"Content-Type": {"application/json"}},
				Body:   `{"type":"{type}","event_id":"{id}","team_id":"T000TEST","event":{"type":"message","text":"test {n}"}}`,
			},
			Sources: []string{
				"scheme, window: @slack/bolt 5.1.0 (its window looks at the past only)",
				"retries, deadline: a research note quoting Slack's documentation, read 2026-05-02, and a write-up of the api.slack.com retry rules",
			},
		},
	})
}

// maxChallenge is the longest challenge echoed, in bytes. Slack's have 52.
const maxChallenge = 512

// answerURLVerification echoes the challenge of Slack's url_verification. What
// is no plain token is not echoed, so that the endpoint reflects neither markup
// nor anything a browser or another verifier would read.
func answerURLVerification(_ Request, body []byte) (Reply, bool) {
	if !bytes.Contains(body, []byte(`"url_verification"`)) {
		return Reply{}, false // spares parsing every event twice
	}
	// A map, because struct fields would match keys of any letter case.
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return Reply{}, false
	}
	var kind, challenge string
	if json.Unmarshal(fields["type"], &kind) != nil || kind != "url_verification" {
		return Reply{}, false
	}
	if json.Unmarshal(fields["challenge"], &challenge) != nil || !plainChallenge(challenge) {
		return Reply{}, false
	}
	return Reply{Status: http.StatusOK, ContentType: "text/plain", Body: []byte(challenge)}, true
}

// plainChallenge reports whether text is 1 to 512 printable ASCII characters
// without those that make markup.
func plainChallenge(text string) bool {
	if text == "" || len(text) > maxChallenge {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' || strings.IndexByte("<>&\"'`", text[i]) >= 0 {
			return false
		}
	}
	return true
}
