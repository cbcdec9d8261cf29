// Package caddy is everything of Einlass that knows Caddy: the handler webhook_gate, the app that owns the
// store, the Caddyfile, the command line. Signatures are checked in package verifier, receipts and the commit
// protocol live in package dedup; this package only carries a request from step to step.
package caddy

import (
	"encoding/json"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup/failpoint"
	"github.com/einlass/einlass/verifier"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler lets each webhook in once. It stands in front of the handler that reaches the app (normally
// `reverse_proxy`), checks the sender's signature over the raw body, enforces size and time limits, reserves
// the event durably, forwards the first delivery only, stores the app's answer and gives that same answer to
// every repeat.
//
// A delivery that is not the app's own answer is refused with `application/problem+json` and a stable `code`;
// see the table of answers in the README.
//
// It sets these placeholders:
//
// Placeholder | Description
// ------------|-------------
// `{http.webhook_gate.source}` | The source's name
// `{http.webhook_gate.event}` | The event id, once it is known
// `{http.webhook_gate.type}` | The event type, if there is one
// `{http.webhook_gate.result}` | `committed`, `rejected`, `aborted`, `repeated`, `conflict`, `in_doubt`, `in_progress`, `held`, `handshake`, `acknowledged`, `refused`, `failed`
// `{http.webhook_gate.code}` | The `code` of the refusal, empty where the app's answer was given
type Handler struct {
	// Names the sender's account. It scopes every event id and must never change for receipts that are to be
	// found again. Default: the verifier's name.
	Source string `json:"source,omitempty"`

	// How a delivery is shown to be authentic: a sender's preset (`github`, `stripe`, ...), `hmac` for any
	// other keyed digest, or `none`. Required.
	VerifyRaw json.RawMessage `json:"verify,omitempty" caddy:"namespace=webhook_gate.verifiers inline_key=scheme"`

	// The largest body in bytes; a longer one is refused with 413. Default: the preset's.
	MaxBody int64 `json:"max_body,omitempty"`

	// How long the whole body may take to arrive; a slower one is refused with 408. Default: `10s`, or
	// answer_within where that is less.
	ReadTimeout caddy.Duration `json:"read_timeout,omitempty"`

	// Where the event id stands: `header NAME`, `json /pointer`, `form FIELD [/pointer]` or `digest`.
	// Default: the preset's.
	EventID string `json:"event_id,omitempty"`

	// Where the event type stands, in the words of event_id. Default: the preset's.
	EventType string `json:"event_type,omitempty"`

	// The event types that are let in. Default: all.
	Events *Events `json:"events,omitempty"`

	// Path of a JSON Schema (2020-12, local references only) that a new event's body must satisfy.
	// Default: none.
	Contract string `json:"contract,omitempty"`

	// When two deliveries with one id are the same event: `bytes`, `json`, `json ignore /pointer ...` or
	// `id`. Default: the preset's.
	Compare string `json:"compare,omitempty"`

	// Whether the same bytes under another, unsigned id count as the same event. Default: the preset's.
	ReplayGuard *bool `json:"replay_guard,omitempty"`

	// Scheme, host and port as the sender sees them, for schemes that sign the URL. Default: as the request
	// tells.
	PublicURL string `json:"public_url,omitempty"`

	// How the app confirms: `response` (a 2xx answer is the confirmation) or `callback URL` (a 2xx answer says
	// that it has taken the event; its confirmation comes to that URL, where a `webhook_gate_callback` handler
	// listens). Default: `response`.
	Confirm string `json:"confirm,omitempty"`

	// Where the app answers what became of an event: `GET URL?source=...&event=...`. Default: it is not asked.
	Outcome string `json:"outcome,omitempty"`

	// What becomes of an event whose attempt's end nobody saw: `ask` puts the outcome question; `redeliver`
	// forwards it again once its lease is over, flagged as in doubt; `hold` keeps it for a person then.
	// Default: `ask` with outcome, else `redeliver`.
	InDoubt string `json:"in_doubt,omitempty"`

	// When the sender gets an answer at the latest; the attempt goes on. Default: the sender's own deadline
	// less a margin, or `8s` where that is unknown.
	AnswerWithin caddy.Duration `json:"answer_within,omitempty"`

	// How long the app may take. Default: `60s`.
	ForwardTimeout caddy.Duration `json:"forward_timeout,omitempty"`

	// How long a reservation keeps other attempts away; at least forward_timeout + 5s.
	// Default: forward_timeout + `10s`.
	Lease caddy.Duration `json:"lease,omitempty"`

	// How long a repeat waits for the running attempt, within answer_within. Default: `5s`.
	Wait caddy.Duration `json:"wait,omitempty"`

	// What Retry-After says where trying again makes sense and nothing better is known. Default: `30s`.
	RetryAfter caddy.Duration `json:"retry_after,omitempty"`

	// The largest answer body in bytes that is kept and given; a longer one is dropped, for the first
	// delivery and its repeats alike. `-1` keeps none. Default: 65536.
	MaxReceipt int64 `json:"max_receipt,omitempty"`

	// The app's answer headers that are kept and given. Default: `Content-Type`.
	ReceiptHeaders []string `json:"receipt_headers,omitempty"`

	app      *App
	logger   *zap.Logger
	verifier verifier.Verifier
	facts    verifier.Facts
	scheme   string // the verifier's name as the config has it
	set      settings
	steps    []step
}

// Events says which event types are let in.
type Events struct {
	// The types that are let in.
	Types []string `json:"types,omitempty"`

	// What other types get: `reject` (422) or `acknowledge` (200, not forwarded, nothing stored).
	// Default: `reject`.
	Otherwise string `json:"otherwise,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.webhook_gate",
		New: func() caddy.Module { return new(Handler) },
	}
}

// step is one step of a delivery's way; a reply ends the way.
type step func(*delivery) *reply

// way lists the steps up to the reservation, in the order of the specification: the cheap before the dear,
// nothing durable before the signature holds, the look-up before the contract so that a new contract never
// refuses the repeat of an event that an older one accepted.
func (h *Handler) way() []step {
	return []step{
		h.checkMethod,
		h.checkHeaders,
		h.readBody,
		h.verify,
		h.handshake,
		h.identify,
		h.lookUp,
		h.checkContract,
		h.reserve,
	}
}

// ServeHTTP takes one delivery along its way and answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	failpoint.Hit(failpoint.DeliveryArrived)
	d := newDelivery(h, w, r)
	defer d.close()
	for _, step := range h.steps {
		if rep := step(d); rep != nil {
			return d.answer(rep)
		}
	}
	return d.answer(h.forward(d, next))
}

// Interface guards
var (
	_ caddy.Module                = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
