package caddy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/event"
	"github.com/einlass/einlass/dedup/failpoint"
)

func init() {
	caddy.RegisterModule(new(Callback))
	httpcaddyfile.RegisterHandlerDirective("webhook_gate_callback", parseCallback)
	httpcaddyfile.RegisterDirectiveOrder("webhook_gate_callback", httpcaddyfile.Before, "invoke")
}

// Callback is where apps confirm their attempts (`confirm callback`). It answers every request of its route.
//
// An app sends `POST` to the URL it got in `Webhook-Gate-Confirm`, with the attempt's token in `Webhook-Gate-Token`
// and `{"outcome":"committed|aborted|rejected","status":200,"content_type":"...","body":"..."}`. An attempt may
// confirm at any time, until it was closed for good. Give it a listener that only the app reaches.
type Callback struct {
	app    *App
	logger *zap.Logger
}

// callbackTimeout is how long the body of a confirmation may take.
const callbackTimeout = 10 * time.Second

// CaddyModule returns the Caddy module information.
func (*Callback) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.webhook_gate_callback",
		New: func() caddy.Module { return new(Callback) },
	}
}

// Provision sets up the handler.
func (c *Callback) Provision(ctx caddy.Context) error {
	c.logger = ctx.Logger()
	app, err := gateApp(ctx)
	if err != nil {
		return err
	}
	c.app = app
	app.callbacks++
	return nil
}

// ServeHTTP takes one confirmation.
func (c *Callback) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	p := &confirmation{callback: c, w: w, r: r}
	rep := p.take()
	p.log(rep)
	failpoint.Hit(failpoint.CallbackBefore)
	err := rep.write(w)
	failpoint.HitAfter(failpoint.CallbackAnswered, http.NewResponseController(w).Flush)
	return err
}

// confirmation is one request to the callback.
type confirmation struct {
	callback *Callback
	w        http.ResponseWriter
	r        *http.Request
	key      dedup.Key
	outcome  outcome
}

// take checks who confirms before it reads a byte of the body.
func (p *confirmation) take() *reply {
	if p.r.Method != http.MethodPost {
		rep := refuse(codeMethod, "a confirmation is a POST")
		rep.header.Set("Allow", http.MethodPost)
		return p.unread(rep)
	}
	token, ok := p.identify()
	if !ok {
		return p.unread(refuse(codeUnknownEvent, "source and event stand once each in the URL as Webhook-Gate-Confirm gives it, the attempt's token once in the header Webhook-Gate-Token").detailed())
	}
	shared, err := p.callback.app.hold()
	if err != nil {
		return p.unread(storeUnavailable(err))
	}
	defer p.callback.app.release()
	known, err := shared.gate.Knows(p.r.Context(), p.key, token)
	switch {
	case err != nil:
		return p.unread(storeUnavailable(err))
	case !known:
		return p.unread(refuse(codeUnknownEvent, "no attempt of this event has this token"))
	}
	limits := p.callback.app.limits(p.key.Source)
	v, rep := p.read(limits)
	if rep != nil {
		return rep
	}
	return p.confirm(shared, token, v, limits)
}

// identify reads event and token; the token stands in a header only, for logs keep URLs.
func (p *confirmation) identify() (token string, ok bool) {
	query, err := url.ParseQuery(p.r.URL.RawQuery)
	if err != nil || len(query["source"]) != 1 || len(query["event"]) != 1 {
		return "", false
	}
	key := dedup.Key{Source: query.Get("source"), Event: query.Get("event")}
	if event.ValidID(key.Source) != nil || event.ValidID(key.Event) != nil {
		return "", false // none of ours, and maybe too long for a log
	}
	p.key = key
	tokens := p.r.Header.Values(headerToken)
	return p.r.Header.Get(headerToken), len(tokens) == 1 && tokens[0] != ""
}

func (p *confirmation) read(limits receiptLimits) (appVerdict, *reply) {
	limit := verdictLimit(limits.maxReceipt)
	if p.r.ContentLength > limit {
		return appVerdict{}, p.unread(refuse(codeBodySize, "the confirmation is larger than one with a body of max_receipt"))
	}
	control := http.NewResponseController(p.w)
	limited := control.SetReadDeadline(time.Now().Add(callbackTimeout)) == nil
	data, err := readAll(p.r.Body, discard{}, p.r.ContentLength, limit)
	if err != nil {
		return appVerdict{}, p.unread(refuseBody(err))
	}
	if limited {
		_ = control.SetReadDeadline(time.Time{})
	}
	v, err := parseVerdict(data)
	switch {
	case err != nil:
		return appVerdict{}, refuse(codeInvalidJSON, err.Error()).detailed()
	case v.Outcome == outcomePending:
		return appVerdict{}, refuse(codeInvalidJSON, "a callback confirms `committed`, `aborted` or `rejected`; `pending` is said in the answer").detailed()
	case int64(len(v.Body)) > limits.maxReceipt:
		return appVerdict{}, refuse(codeBodySize, errVerdictBody.Error()).detailed()
	}
	p.outcome = v.Outcome
	return v, nil
}

// outcomes are the words of a confirmation.
var outcomes = map[outcome]dedup.Outcome{
	outcomeCommitted: dedup.Commit, outcomeRejected: dedup.Reject, outcomeAborted: dedup.Abort,
}

// confirm stores the outcome. The app may have hung up: what it said is stored all the same.
func (p *confirmation) confirm(shared *sharedStore, token string, v appVerdict, limits receiptLimits) *reply {
	failpoint.Hit(failpoint.CallbackRead)
	answer := dedup.Answer{}
	if v.Outcome != outcomeAborted {
		answer = v.answer(limits)
	}
	ctx, cancel := confirming(p.r.Context())
	defer cancel()
	receipt, err := shared.gate.Confirm(ctx, p.key, token, outcomes[v.Outcome], answer)
	switch {
	case err == nil:
		return confirmed(receipt)
	case errors.Is(err, dedup.ErrReceiptDiffers):
		return refuse(codeReceiptDiffers, "another receipt is stored: two receipts prove two effects")
	case errors.Is(err, dedup.ErrAttemptClosed):
		return refuse(codeAttemptClosed, "the attempt was closed for good")
	case errors.Is(err, dedup.ErrUnknownEvent), errors.Is(err, dedup.ErrUnknownAttempt):
		return refuse(codeUnknownEvent, "no attempt of this event has this token")
	default:
		return storeUnavailable(err)
	}
}

// unread ends an HTTP/1 connection whose body was not read; see the gate's own.
func (p *confirmation) unread(rep *reply) *reply { return unread(p.w, p.r, rep) }

func (p *confirmation) log(rep *reply) {
	logAt(p.callback.logger, rep, "confirmation", zap.String("source", p.key.Source), zap.String("event", p.key.Event),
		zap.String("outcome", string(p.outcome)), zap.String("remote_ip", remoteIP(p.r)))
}

// discard takes a body that nobody checks.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// confirming is a context for storing what an app says, which is stored even if the app hangs up.
func confirming(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callbackTimeout)
}

func parseCallback(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	c := new(Callback)
	return c, c.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	webhook_gate_callback [<matcher>]
func (c *Callback) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // directive name
	if d.NextArg() {
		return d.Errf("webhook_gate_callback takes only a matcher, got %q", d.Val())
	}
	if d.NextBlock(0) {
		return d.Errf("webhook_gate_callback has no options, got %q: what is kept of an answer is said at the gate (max_receipt)", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Callback)(nil)
	_ caddyhttp.MiddlewareHandler = (*Callback)(nil)
	_ caddyfile.Unmarshaler       = (*Callback)(nil)
)
