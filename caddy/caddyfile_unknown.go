package caddy

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/einlass/einlass/verifier"
)

// gateWords are the words of a webhook_gate block, in the order of the syntax.
var gateWords = []string{
	"source", "verify", "max_body", "read_timeout", "event_id", "event_type", "events", "contract", "compare",
	"replay_guard", "public_url", "confirm", "outcome", "in_doubt", "answer_within", "forward_timeout", "lease", "wait",
	"retry_after", "max_receipt", "receipt_headers",
}

// laterWords are words that the design names and this version does not have. Each says what to do meanwhile.
var laterWords = map[string]string{
	"retention":      "leave it out: receipts are kept for ever",
	"sign":           "leave it out: the app may trust what comes through the gate",
	"max_concurrent": "leave it out, or limit with the next handler",
	"inbox":          "leave it out: a delivery that fails is answered so that the sender tries again",
}

func unknownGateWord(d *caddyfile.Dispenser, word string) error {
	if instead, ok := laterWords[word]; ok {
		return d.Errf("%s is not in this version: %s", word, instead)
	}
	return unknownWord(d, "webhook_gate", gateWords...)
}

// unknownWord names the nearest known word, or all of them.
func unknownWord(d *caddyfile.Dispenser, of string, known ...string) error {
	word := d.Val()
	if near := nearest(word, known); near != "" {
		return d.Errf("unrecognized subdirective %q of %s: did you mean `%s`?", word, of, near)
	}
	return d.Errf("unrecognized subdirective %q of %s: it knows %s", word, of, strings.Join(known, ", "))
}

// nearest gives the known word that differs least from word, if it differs in no more than a third of it.
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		if n := verifier.EditDistance(word, k); n <= least && n < len(k) {
			if best == "" || n < least {
				best, least = k, n
			}
		}
	}
	return best
}
