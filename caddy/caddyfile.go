package caddy

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("webhook_gate", parseCaddyfile)
	// Before invoke: neither respond nor handle, which come later, can be reached around the gate.
	httpcaddyfile.RegisterDirectiveOrder("webhook_gate", httpcaddyfile.Before, "invoke")
}

func parseCaddyfile(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return handler, nil
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	webhook_gate [<matcher>] [<verifier> <secret>...] {
//		source          <name>
//		verify          <verifier> [<secret>...] [{ ... }]
//		max_body        <size>
//		read_timeout    <duration>
//		event_id        header <name>... | json </pointer> | form <field> [</pointer>] | digest
//		event_type      header <name>... | json </pointer> | form <field> [</pointer>]
//		events          <type>... [{ otherwise reject|acknowledge }]
//		contract        <file>
//		compare         bytes | json [ignore </pointer>...] | id
//		replay_guard    on | off
//		public_url      <scheme://host[:port]>
//		confirm         response | callback <url>
//		outcome         <url>
//		in_doubt        ask | redeliver | hold
//		answer_within   <duration>
//		forward_timeout <duration>
//		lease           <duration>
//		wait            <duration>
//		retry_after     <duration>
//		max_receipt     <size> | off
//		receipt_headers <name>...
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // directive name
	if tokens := d.RemainingArgsAsTokens(); len(tokens) > 0 {
		if err := h.unmarshalVerify(d, tokens); err != nil {
			return err
		}
	}
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		if seen[word] {
			return d.Errf("%s already specified", word)
		}
		seen[word] = true
		if err := h.unmarshalWord(d, word); err != nil {
			return err
		}
		if err := h.checkEach(); err != nil {
			return d.WrapErr(err) // on the word's own line
		}
	}
	if err := h.checkWords(); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (h *Handler) unmarshalWord(d *caddyfile.Dispenser, word string) error {
	switch word {
	case "source":
		return unmarshalString(d, &h.Source)
	case "verify":
		return h.unmarshalVerify(d, d.NextSegment()[1:])
	case "max_body":
		return unmarshalSize(d, &h.MaxBody)
	case "max_receipt":
		return h.unmarshalMaxReceipt(d)
	case "read_timeout":
		return unmarshalDuration(d, &h.ReadTimeout)
	case "answer_within":
		return unmarshalDuration(d, &h.AnswerWithin)
	case "forward_timeout":
		return unmarshalDuration(d, &h.ForwardTimeout)
	case "lease":
		return unmarshalDuration(d, &h.Lease)
	case "wait":
		return unmarshalDuration(d, &h.Wait)
	case "retry_after":
		return unmarshalDuration(d, &h.RetryAfter)
	case "event_id":
		return unmarshalWords(d, &h.EventID, "header NAME, json /pointer, form FIELD or digest")
	case "event_type":
		return unmarshalWords(d, &h.EventType, "header NAME, json /pointer or form FIELD")
	case "compare":
		return unmarshalWords(d, &h.Compare, "bytes, json [ignore /pointer ...] or id")
	case "events":
		return h.unmarshalEvents(d)
	case "contract":
		return unmarshalString(d, &h.Contract)
	case "replay_guard":
		return unmarshalSwitch(d, &h.ReplayGuard)
	case "public_url":
		return unmarshalString(d, &h.PublicURL)
	case "confirm":
		return unmarshalWords(d, &h.Confirm, "response, or callback <url>")
	case "outcome":
		return unmarshalString(d, &h.Outcome)
	case "in_doubt":
		return unmarshalString(d, &h.InDoubt)
	case "receipt_headers":
		h.ReceiptHeaders = d.RemainingArgs()
		if len(h.ReceiptHeaders) == 0 {
			return d.Errf("receipt_headers names no header: write `receipt_headers Content-Type`")
		}
		return nil
	}
	return unknownGateWord(d, word)
}

// unmarshalVerify parses the verifier that the tokens name, on the directive's own line or in its block.
func (h *Handler) unmarshalVerify(d *caddyfile.Dispenser, tokens []caddyfile.Token) error {
	if len(tokens) == 0 {
		return d.Errf("verify names no verifier: write `verify <verifier> <secret>`")
	}
	if h.VerifyRaw != nil {
		return d.Errf("verify already specified: name the verifier either on the webhook_gate line or in the block")
	}
	name := tokens[0].Text
	if len(tokens) > 1 && strings.HasPrefix(tokens[1].Text, "/") {
		// The word itself is not repeated: it may be a secret after all.
		return d.Errf("what stands behind %s begins with /: a path goes before the verifier, as in `webhook_gate /path %s <secret>`; a secret that begins with / goes into the block of `verify`, as `secret <value>`",
			name, name)
	}
	v, err := unmarshalVerifier(d, caddyfile.NewDispenser(tokens), name)
	if err != nil {
		return err
	}
	h.VerifyRaw = caddyconfig.JSONModuleObject(v, "scheme", name, nil)
	return nil
}

func (h *Handler) unmarshalEvents(d *caddyfile.Dispenser) error {
	h.Events = &Events{Types: d.RemainingArgs()}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if d.Val() != "otherwise" {
			return unknownWord(d, "events", "otherwise")
		}
		if err := unmarshalString(d, &h.Events.Otherwise); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) unmarshalMaxReceipt(d *caddyfile.Dispenser) error {
	if d.CountRemainingArgs() == 1 && d.NextArg() {
		if d.Val() == "off" {
			h.MaxReceipt = -1
			return nil
		}
		d.Prev()
	}
	return unmarshalSize(d, &h.MaxReceipt)
}

func unmarshalString(d *caddyfile.Dispenser, to *string) error {
	word := d.Val()
	if !d.AllArgs(to) {
		return d.Errf("%s takes exactly one argument", word)
	}
	if strings.TrimSpace(*to) == "" {
		return d.Errf("%s must not be empty", word)
	}
	return nil
}

func unmarshalWords(d *caddyfile.Dispenser, to *string, choices string) error {
	word := d.Val()
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.Errf("%s needs an argument: %s", word, choices)
	}
	*to = strings.Join(args, " ")
	return nil
}

func unmarshalDuration(d *caddyfile.Dispenser, to *caddy.Duration) error {
	var text string
	word := d.Val()
	if !d.AllArgs(&text) {
		return d.Errf("%s takes one duration, such as `%s 30s`", word, word)
	}
	t, err := caddy.ParseDuration(text)
	if err != nil || t <= 0 {
		return d.Errf("%s %q is not a duration above zero: write it as in `%s 30s`", word, text, word)
	}
	*to = caddy.Duration(t)
	return nil
}

func unmarshalSize(d *caddyfile.Dispenser, to *int64) error {
	var text string
	word := d.Val()
	if !d.AllArgs(&text) {
		return d.Errf("%s takes one size, such as `%s 1MiB`", word, word)
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<40 {
		return d.Errf("%s %q is not a size above zero: write it as in `%s 1MiB`", word, text, word)
	}
	*to = int64(n)
	return nil
}

func unmarshalSwitch(d *caddyfile.Dispenser, to **bool) error {
	var text string
	word := d.Val()
	if !d.AllArgs(&text) || (text != "on" && text != "off") {
		return d.Errf("%s is `on` or `off`", word)
	}
	on := text == "on"
	*to = &on
	return nil
}

// Interface guards
var _ caddyfile.Unmarshaler = (*Handler)(nil)
