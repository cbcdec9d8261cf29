package caddy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/einlass/einlass/dedup/event"
)

// checkWords refuses what the words alone show to be wrong. It looks at no file, no environment and no
// default, so the Caddyfile parser runs it too and can name file and line.
func (h *Handler) checkWords() error {
	if h.VerifyRaw == nil {
		return errors.New("verify is missing: write `webhook_gate [matcher] <verifier> <secret>`, such as `webhook_gate /stripe stripe {env.STRIPE_WEBHOOK_SECRET}`, or `verify <verifier> <secret>` in the block")
	}
	if err := h.checkTimes(); err != nil {
		return err
	}
	if err := h.checkInDoubt(); err != nil {
		return err
	}
	return h.checkEach()
}

// checkEach refuses words that are wrong by themselves, whatever the others are.
func (h *Handler) checkEach() error {
	if err := h.checkChoices(); err != nil {
		return err
	}
	if err := h.checkContentWords(); err != nil {
		return err
	}
	for _, name := range h.ReceiptHeaders {
		if err := checkReceiptHeader(name); err != nil {
			return err
		}
	}
	if err := h.checkConfirm(); err != nil {
		return err
	}
	if err := checkAppURL("outcome", h.Outcome); err != nil {
		return err
	}
	return checkPublicURL(h.PublicURL)
}

// checkInDoubt holds in_doubt and outcome against each other.
func (h *Handler) checkInDoubt() error {
	switch {
	case h.InDoubt == inDoubtAsk && h.Outcome == "":
		return errors.New("in_doubt ask does not say where to ask: write also `outcome <URL>`, such as `outcome http://127.0.0.1:3000/webhook-outcome`")
	case h.Outcome != "" && h.InDoubt != "" && h.InDoubt != inDoubtAsk:
		return fmt.Errorf("outcome is asked only with `in_doubt ask`: leave out the line `in_doubt %s`, or the line `outcome`", h.InDoubt)
	}
	return nil
}

// checkConfirm knows `response` and `callback <URL>`.
func (h *Handler) checkConfirm() error {
	if h.Confirm == "" || h.Confirm == confirmResponse {
		return nil
	}
	at, ok := strings.CutPrefix(h.Confirm, confirmCallback+" ")
	if !ok || strings.Contains(at, " ") {
		return fmt.Errorf("confirm %q is not a choice: write `confirm response` or `confirm callback <URL>`, such as `confirm callback http://127.0.0.1:9081`", h.Confirm)
	}
	return checkAppURL("confirm callback", at)
}

// checkAppURL is for the parser: placeholders are looked into when the config is loaded.
func checkAppURL(word, text string) error {
	if text == "" || strings.Contains(text, "{") {
		return nil
	}
	_, err := appURL(word, text)
	return err
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// appURL is where the gate is reached by the app, or the app by the gate.
func appURL(word, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", !validPort(u.Port()), u.User != nil, u.Fragment != "":
		like := "http://127.0.0.1:9081"
		if word == "outcome" {
			like = "http://127.0.0.1:3000/webhook-outcome"
		}
		return nil, fmt.Errorf("%s: not a URL of scheme, host, port and path: write it as in `%s %s`", word, word, like)
	case word != "outcome" && u.RawQuery != "":
		return nil, fmt.Errorf("%s: the URL must have no query: the gate adds source and event", word)
	}
	return u, nil
}

func (h *Handler) checkTimes() error {
	for _, t := range []struct {
		name string
		d    caddy.Duration
	}{
		{"read_timeout", h.ReadTimeout}, {"answer_within", h.AnswerWithin}, {"forward_timeout", h.ForwardTimeout},
		{"lease", h.Lease}, {"wait", h.Wait}, {"retry_after", h.RetryAfter},
	} {
		if t.d < 0 {
			return fmt.Errorf("%s must not be negative: leave it out for the default", t.name)
		}
	}
	if h.Lease == 0 {
		return nil
	}
	return checkLease(h.Lease, or(h.ForwardTimeout, caddy.Duration(defaultForwardTimeout)))
}

// checkLease keeps a reservation alive for longer than its attempt can run.
func checkLease(lease, forward caddy.Duration) error {
	if least := time.Duration(forward) + leaseMinMargin; time.Duration(lease) < least {
		return fmt.Errorf("lease %s is too short for forward_timeout %s: write `lease %s` or more, or leave it out",
			time.Duration(lease), time.Duration(forward), least)
	}
	return nil
}

func (h *Handler) checkChoices() error {
	switch {
	case h.MaxBody < 0:
		return errors.New("max_body must be positive, such as `max_body 1MiB`")
	case h.MaxReceipt < -1:
		return errors.New("max_receipt must be positive, or -1 to keep no body")
	case h.InDoubt != "" && h.InDoubt != inDoubtRedeliver && h.InDoubt != inDoubtHold && h.InDoubt != inDoubtAsk:
		return fmt.Errorf("in_doubt %q is not a choice: write `in_doubt ask`, `in_doubt redeliver` or `in_doubt hold`", h.InDoubt)
	case h.Source != "" && event.ValidID(h.Source) != nil:
		return errors.New("source must be 1 to 512 bytes of text without control characters, and without blanks at its ends")
	}
	return nil
}

func (h *Handler) checkContentWords() error {
	for _, at := range []struct{ name, text string }{{"event_id", h.EventID}, {"event_type", h.EventType}} {
		if at.text == "" {
			continue
		}
		if _, err := event.ParseSelector(at.text); err != nil {
			return fmt.Errorf("%s: %w", at.name, err)
		}
	}
	if h.EventType == "digest" {
		return errors.New("event_type: a digest is no type; write `event_type header NAME` or `event_type json /pointer`")
	}
	if h.Compare != "" {
		if _, err := event.ParseComparison(h.Compare); err != nil {
			return fmt.Errorf("compare: %w", err)
		}
	}
	if h.Events == nil {
		return nil
	}
	if len(h.Events.Types) == 0 {
		return errors.New("events names no type: write `events <type>...`")
	}
	switch h.Events.Otherwise {
	case "", otherwiseReject, otherwiseAcknowledge:
		return nil
	}
	return fmt.Errorf("events: otherwise %q: write `otherwise reject` or `otherwise acknowledge`", h.Events.Otherwise)
}

// checkReceiptHeader refuses headers that would make a stored answer unsafe to give to somebody else.
func checkReceiptHeader(name string) error {
	canonical := http.CanonicalHeaderKey(name)
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("receipt_headers: %q is not the name of a header", name)
	}
	switch canonical {
	case "Connection", "Content-Encoding", "Content-Length", "Date", "Keep-Alive", "Location", "Proxy-Authenticate",
		"Set-Cookie", "Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return fmt.Errorf("receipt_headers: %s must not be kept in a receipt", canonical)
	}
	if isGateHeader(canonical) {
		return fmt.Errorf("receipt_headers: %s is the gate's own name", canonical)
	}
	return nil
}

// checkPublicURL wants scheme and host only: the path and query are the request's own.
func checkPublicURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("public_url %q: write scheme, host and port only, such as `public_url https://hooks.example.com`", text)
	}
	return nil
}
