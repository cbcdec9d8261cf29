package caddy

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/event"
	"github.com/einlass/einlass/verifier"
)

// delivery is one request on its way through the gate, with what each step has learned of it. It belongs to
// its request's goroutine; an attempt that outlives the request takes what it needs along (see forward.go).
type delivery struct {
	w       http.ResponseWriter
	r       *http.Request
	set     *settings
	app     *App
	began   time.Time
	answers time.Time // when the sender gets an answer at the latest

	signed   verifier.Request
	check    verifier.Check
	body     []byte
	doc      *event.Document
	identity dedup.Identity
	typeErr  error // why the event type could not be read
	known    bool  // a receipt exists: the event passed the contract before
	shared   *sharedStore
	attempt  *dedup.Attempt

	report report
	given  atomic.Pointer[reply] // for placeholders, which an attempt that goes on may still read
}

func newDelivery(h *Handler, w http.ResponseWriter, r *http.Request) *delivery {
	now := time.Now()
	d := &delivery{
		w: w, r: r, set: &h.set, app: h.app,
		began:   now,
		answers: now.Add(h.set.answerWithin),
		signed:  verifier.Request{Method: r.Method, URL: h.set.url(r), Header: r.Header, Now: now},
		report:  report{logger: h.logger, secret: -1},
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(d.placeholder)
	}
	return d
}

// hold takes part in the open store for as long as the request lasts. The handler's config may be gone by
// then; the hold is what keeps the file open.
func (d *delivery) hold() (*sharedStore, error) {
	if d.shared != nil {
		return d.shared, nil
	}
	shared, err := d.app.hold()
	if err != nil {
		return nil, err
	}
	d.shared = shared
	return shared, nil
}

// close gives back what the delivery held and writes its log line.
func (d *delivery) close() {
	if d.shared != nil {
		d.app.release()
	}
	d.report.write(d)
}

// storing is a context for steps of the store, which a sender that hangs up does not cut short: a reservation that
// nobody forwards would be in doubt. It ends when the sender must be answered, but leaves the store a second; a write
// that has begun by then is waited for.
func (d *delivery) storing() (context.Context, context.CancelFunc) {
	end := d.answers
	if least := time.Now().Add(time.Second); end.Before(least) {
		end = least
	}
	return context.WithDeadline(context.WithoutCancel(d.r.Context()), end)
}

// waiting is a context that ends when the sender goes away, when it must be answered, or after limit.
func (d *delivery) waiting(limit time.Duration) (context.Context, context.CancelFunc) {
	end := d.answers
	if t := time.Now().Add(limit); t.Before(end) {
		end = t
	}
	return context.WithDeadline(d.r.Context(), end)
}

// url is the request's URL as the sender sees it. Handlers before the gate may have rewritten it, but the
// sender signed the original.
func (s *settings) url(r *http.Request) string {
	uri := r.RequestURI
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && orig.RequestURI != "" {
		uri = orig.RequestURI
	}
	if !strings.HasPrefix(uri, "/") { // absolute-form (RFC 9112, section 3.2.2)
		uri = r.URL.RequestURI()
	}
	if s.publicURL != "" {
		return s.publicURL + uri
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + uri
}

// placeholder gives {http.webhook_gate.<name>} for logs, headers and handlers around the gate.
func (d *delivery) placeholder(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, "http.webhook_gate.")
	if !ok {
		return nil, false
	}
	switch name {
	case "source":
		return d.set.source, true
	case "event":
		return d.identity.Event, true
	case "type":
		return d.identity.Type, true
	}
	rep := d.given.Load()
	if rep == nil {
		rep = &reply{}
	}
	switch name {
	case "result":
		return string(rep.result), true
	case "code":
		return string(rep.code), true
	}
	return nil, false
}
