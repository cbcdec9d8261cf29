package caddy

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/einlass/einlass/dedup"
)

// The headers of an attempt. The same names, their underscore twins too, never come in from outside.
const (
	headerSource   = "Webhook-Gate-Source"
	headerEvent    = "Webhook-Gate-Event"
	headerType     = "Webhook-Gate-Type"
	headerAttempt  = "Webhook-Gate-Attempt"
	headerToken    = "Webhook-Gate-Token"
	headerDigest   = "Webhook-Gate-Digest"
	headerInDoubt  = "Webhook-Gate-In-Doubt"
	headerDeadline = "Webhook-Gate-Deadline"
	headerConfirm  = "Webhook-Gate-Confirm"
	headerOutcome  = "Webhook-Gate-Outcome"

	gatePrefix = "webhook-gate-"
)

// isGateHeader tells the gate's own names in any case, and with underscores: CGI-like apps read both as one.
func isGateHeader(name string) bool {
	if len(name) < len(gatePrefix) {
		return false
	}
	return strings.EqualFold(strings.ReplaceAll(name[:len(gatePrefix)], "_", "-"), gatePrefix)
}

// forwardHeaders gives the headers of the request as the app gets them: the sender's, less what is the gate's
// own, what would make Go's transport send a request twice, and what is between the sender and the gate.
func forwardHeaders(from http.Header, a *dedup.Attempt, answers time.Time, callback *url.URL) http.Header {
	h := from.Clone()
	for name := range h {
		if isGateHeader(name) {
			delete(h, name)
		}
	}
	// Headers that Connection names are for the gate alone (RFC 9110, section 7.6.1). They go before the gate's own
	// are set, so that nobody can name those.
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{
		// With one of these Go's transport takes a POST for idempotent and sends it again on its own
		// when a reused connection dies (net/http, Request.isReplayable).
		"Idempotency-Key", "X-Idempotency-Key",
		"Expect",          // the body is here already
		"Accept-Encoding", // a receipt must be readable to whoever gets it later
		"Upgrade", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Proxy-Connection",
	} {
		h.Del(name)
	}
	id := a.Identity
	h.Set(headerSource, id.Source)
	h.Set(headerEvent, id.Event)
	if id.Type != "" {
		h.Set(headerType, id.Type)
	}
	h.Set(headerAttempt, strconv.FormatUint(uint64(a.Count), 10))
	h.Set(headerToken, a.Token)
	h.Set(headerDigest, "sha-256=:"+base64.StdEncoding.EncodeToString(id.Digest[:])+":")
	h.Set(headerDeadline, answers.UTC().Format(time.RFC3339Nano))
	if a.InDoubt {
		h.Set(headerInDoubt, "true")
	}
	if callback != nil {
		h.Set(headerConfirm, confirmURL(*callback, id.Key))
	}
	return h
}

// confirmURL is where an attempt of the event confirms. The token, which says which attempt it is, goes in a header.
func confirmURL(at url.URL, key dedup.Key) string {
	at.RawQuery = url.Values{"source": {key.Source}, "event": {key.Event}}.Encode()
	if at.Path == "" {
		at.Path = "/"
	}
	return at.String()
}
