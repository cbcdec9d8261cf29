package caddy

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/event"
	"github.com/einlass/einlass/verifier"
)

const (
	defaultMaxBody        = 1 << 20
	defaultReadTimeout    = 10 * time.Second
	defaultAnswerWithin   = 8 * time.Second
	defaultForwardTimeout = 60 * time.Second
	defaultWait           = 5 * time.Second
	defaultRetryAfter     = 30 * time.Second
	defaultMaxReceipt     = 64 << 10

	leaseMargin     = 10 * time.Second
	leaseMinMargin  = 5 * time.Second
	answerMinMargin = 500 * time.Millisecond
)

// The words of in_doubt, confirm and events' otherwise that this version knows.
const (
	inDoubtRedeliver     = "redeliver"
	inDoubtHold          = "hold"
	inDoubtAsk           = "ask"
	confirmResponse      = "response"
	confirmCallback      = "callback"
	otherwiseReject      = "reject"
	otherwiseAcknowledge = "acknowledge"
)

// settings are a gate's config with every default filled in: what the operator wrote, else what is known of
// the sender, else our own.
type settings struct {
	source         string
	maxBody        int64
	readTimeout    time.Duration
	idAt           event.Selector
	typeAt         event.Selector
	types          map[string]bool // nil: every type is let in
	acknowledge    bool            // other types get 200 instead of 422
	compare        event.Comparison
	contract       *event.Contract
	guard          bool
	publicURL      string
	policy         dedup.Policy
	callback       *url.URL // where the app confirms; nil for `confirm response`
	answerWithin   time.Duration
	forwardTimeout time.Duration
	wait           time.Duration
	retryAfter     time.Duration
	maxReceipt     int64
	receiptHeaders []string
}

// resolve fills the defaults. It reads the contract's file and nothing else.
func (h *Handler) resolve(name string, facts verifier.Facts) (settings, error) {
	s := settings{
		source:         or(h.Source, name),
		maxBody:        or(h.MaxBody, or(facts.MaxBody, defaultMaxBody)),
		publicURL:      strings.TrimSuffix(h.PublicURL, "/"),
		answerWithin:   or(time.Duration(h.AnswerWithin), answerWithin(facts.Deadline)),
		forwardTimeout: or(time.Duration(h.ForwardTimeout), defaultForwardTimeout),
		wait:           or(time.Duration(h.Wait), defaultWait),
		retryAfter:     or(time.Duration(h.RetryAfter), defaultRetryAfter),
		maxReceipt:     max(or(h.MaxReceipt, defaultMaxReceipt), 0),
		receiptHeaders: h.ReceiptHeaders,
	}
	s.readTimeout = or(time.Duration(h.ReadTimeout), min(defaultReadTimeout, s.answerWithin))
	if s.receiptHeaders == nil {
		s.receiptHeaders = []string{"Content-Type"}
	}
	s.policy.Lease = or(time.Duration(h.Lease), s.forwardTimeout+leaseMargin)
	if err := checkLease(caddy.Duration(s.policy.Lease), caddy.Duration(s.forwardTimeout)); err != nil {
		return s, err
	}
	if err := h.resolveCommit(&s); err != nil {
		return s, err
	}
	return s, h.resolveContent(&s, facts)
}

// resolveCommit fills how gate and app agree on an outcome.
func (h *Handler) resolveCommit(s *settings) (err error) {
	if at, ok := strings.CutPrefix(h.Confirm, confirmCallback+" "); ok {
		if s.callback, err = replacedURL("confirm callback", at); err != nil {
			return err
		}
	}
	switch {
	case h.InDoubt == inDoubtHold:
		s.policy.InDoubt = dedup.HoldForPerson
	case h.Outcome != "":
		at, err := replacedURL("outcome", h.Outcome)
		if err != nil {
			return err
		}
		s.policy.InDoubt, s.policy.Asker = dedup.Ask, newAsker(*at, s.limits())
	}
	return nil
}

// commitWords tell two gates of one source apart that would agree with their apps in different ways.
func (s *settings) commitWords() string {
	words := []any{s.policy.InDoubt, s.policy.Lease, s.maxReceipt, s.receiptHeaders}
	if a, ok := s.policy.Asker.(*asker); ok {
		words = append(words, "outcome", a.at.String())
	}
	if s.callback != nil {
		words = append(words, "callback", s.callback.String())
	}
	return fmt.Sprintln(words...)
}

// replacedURL is a URL of the app's, placeholders replaced.
func replacedURL(word, text string) (*url.URL, error) {
	text, err := caddy.NewReplacer().ReplaceOrErr(text, true, true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
	return appURL(word, text)
}

// resolveContent fills what is read from a delivery's content.
func (h *Handler) resolveContent(s *settings, facts verifier.Facts) (err error) {
	id, typ := or(h.EventID, facts.EventID), or(h.EventType, facts.EventType)
	if id == "" {
		return errors.New("event_id is missing and the verifier knows none: write `event_id header NAME`, `event_id json /pointer` or `event_id digest`")
	}
	if s.idAt, err = event.ParseSelector(id); err != nil {
		return fmt.Errorf("event_id: %w", err)
	}
	if typ != "" {
		if s.typeAt, err = event.ParseSelector(typ); err != nil {
			return fmt.Errorf("event_type: %w", err)
		}
	}
	if s.compare, err = event.ParseComparison(or(h.Compare, or(facts.Compare, "bytes"))); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if h.Contract != "" {
		if s.contract, err = event.CompileContract(h.Contract); err != nil {
			return err // says that it is about the contract
		}
	}
	s.guard = h.guards(s.idAt, facts)
	if h.Events == nil {
		return nil
	}
	if typ == "" {
		return errors.New("events needs to know where the type stands: write `event_type json /pointer` or `event_type header NAME`")
	}
	s.acknowledge = h.Events.Otherwise == otherwiseAcknowledge
	s.types = make(map[string]bool, len(h.Events.Types))
	for _, t := range h.Events.Types {
		s.types[t] = true
	}
	return nil
}

// guards tells whether the same bytes under another id are the same event: as the operator says, or as is known of the
// sender; and where the operator has put the id into a header, unless that header is known to be signed.
func (h *Handler) guards(id event.Selector, facts verifier.Facts) bool {
	switch {
	case h.ReplayGuard != nil:
		return *h.ReplayGuard
	case h.EventID == "" || h.EventID == facts.EventID:
		return facts.ReplayGuard
	}
	if _, none := h.verifier.(verifier.None); none {
		return false // nothing is signed, so nothing can be guarded
	}
	signer, ok := h.verifier.(verifier.HeaderSigner)
	for _, name := range id.HeaderNames() {
		if !ok || !signer.SignsHeader(name) {
			return true
		}
	}
	return false
}

// answerWithin leaves a margin of a tenth, at least half a second, below the sender's own deadline.
func answerWithin(deadline time.Duration) time.Duration {
	if deadline <= 0 {
		return defaultAnswerWithin
	}
	return max(deadline-max(deadline/10, answerMinMargin), deadline/2)
}

// or gives def where v was left out.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
