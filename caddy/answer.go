package caddy

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/failpoint"
	"github.com/einlass/einlass/verifier"
)

// code is the stable word that tells a sender, and the operator's tools, why a delivery was not answered by
// the app. Statuses and codes are chosen here and nowhere else.
type code string

const (
	codeMethod           code = "method"
	codeBodyTimeout      code = "body_timeout"
	codeBodySize         code = "body_size"
	codeAmbiguousHeader  code = "ambiguous_header"
	codeBodyIncomplete   code = "body_incomplete"
	codeInvalidJSON      code = "invalid_json"
	codeAuthentication   code = "authentication"
	codeHandshake        code = "handshake"
	codeEventContract    code = "event_contract"
	codeEventConflict    code = "event_conflict"
	codeUpstreamRedirect code = "upstream_redirect"
	codeTemporaryFailure code = "temporary_processing_failure"
	codeInProgress       code = "in_progress"
	codeInDoubt          code = "in_doubt"
	codeStoreUnavailable code = "store_unavailable"

	// To the app, in answer to its callback.
	codeUnknownEvent   code = "unknown_event"
	codeReceiptDiffers code = "receipt_differs"
	codeAttemptClosed  code = "attempt_closed"
)

// problems gives each code its status and a title for people. The title tells the caller no more than the
// code: which check of a signature failed is for the log.
var problems = map[code]struct {
	status int
	title  string
}{
	codeMethod:           {http.StatusMethodNotAllowed, "The method is not allowed here"},
	codeBodyTimeout:      {http.StatusRequestTimeout, "The body did not arrive in time"},
	codeBodySize:         {http.StatusRequestEntityTooLarge, "The body is too large"},
	codeAmbiguousHeader:  {http.StatusBadRequest, "A header that must be single is repeated"},
	codeBodyIncomplete:   {http.StatusBadRequest, "The body is incomplete"},
	codeInvalidJSON:      {http.StatusBadRequest, "The body is not valid JSON"},
	codeAuthentication:   {http.StatusUnauthorized, "The delivery could not be authenticated"},
	codeHandshake:        {http.StatusForbidden, "The handshake was refused"},
	codeEventContract:    {http.StatusUnprocessableEntity, "The event does not satisfy the contract"},
	codeEventConflict:    {http.StatusConflict, "The event id is known with other content"},
	codeUpstreamRedirect: {http.StatusBadGateway, "The app answered with a redirect"},
	codeTemporaryFailure: {http.StatusServiceUnavailable, "The event could not be processed now"},
	codeInProgress:       {http.StatusServiceUnavailable, "The event is being processed"},
	codeInDoubt:          {http.StatusServiceUnavailable, "The outcome of an attempt is not known yet"},
	codeStoreUnavailable: {http.StatusServiceUnavailable, "Receipts cannot be stored now"},
	codeUnknownEvent:     {http.StatusNotFound, "No such attempt is known"},
	codeReceiptDiffers:   {http.StatusConflict, "Another receipt is stored for this event"},
	codeAttemptClosed:    {http.StatusConflict, "The attempt was closed for good"},
}

// result is what became of a delivery, in one word, for logs and placeholders.
type result string

const (
	resultCommitted    result = "committed"
	resultRejected     result = "rejected"
	resultAborted      result = "aborted"
	resultRepeated     result = "repeated"
	resultConflict     result = "conflict"
	resultInDoubt      result = "in_doubt"
	resultInProgress   result = "in_progress"
	resultHeld         result = "held"
	resultHandshake    result = "handshake"
	resultAcknowledged result = "acknowledged"
	resultRefused      result = "refused"
	resultFailed       result = "failed"
)

const (
	headerReceipt     = "Webhook-Gate-Receipt"
	headerReceiptBody = "Webhook-Gate-Receipt-Body"
)

// reply is what a sender gets.
type reply struct {
	status int
	header http.Header
	body   []byte
	code   code // "" where the answer is the app's own, or a handshake's
	result result
	reason string // for the operator, never for the sender
	err    error  // a fault of ours behind it
}

// refuse builds the problem+json answer of a code (RFC 9457). reason goes to the log only.
func refuse(c code, reason string) *reply {
	p := problems[c]
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   code   `json:"code"`
	}{"about:blank", p.title, p.status, c}) // strings and a number: cannot fail
	rep := &reply{status: p.status, header: make(http.Header, 4), body: body, code: c, result: resultRefused, reason: reason}
	rep.header.Set("Content-Type", "application/problem+json")
	switch c {
	case codeEventConflict, codeReceiptDiffers, codeAttemptClosed:
		rep.result = resultConflict
	case codeInDoubt:
		rep.result = resultInDoubt
	case codeInProgress:
		rep.result = resultInProgress
	case codeTemporaryFailure, codeUpstreamRedirect:
		rep.result = resultAborted
	case codeStoreUnavailable:
		rep.result = resultFailed
	}
	return rep
}

// detailed tells the reason also to the caller: in answers to the app, which may know it.
func (rep *reply) detailed() *reply {
	p := problems[rep.code]
	rep.body, _ = json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   code   `json:"code"`
		Detail string `json:"detail"`
	}{"about:blank", p.title, p.status, rep.code, rep.reason}) // strings and a number: cannot fail
	return rep
}

// retryLater refuses with a time after which trying again makes sense.
func retryLater(c code, after time.Duration, reason string) *reply {
	rep := refuse(c, reason)
	rep.header.Set("Retry-After", retryAfter(after))
	return rep
}

// storeRetry is what a sender is told when the store is the trouble: an operator has to act.
const storeRetry = 30 * time.Second

func storeUnavailable(err error) *reply {
	rep := retryLater(codeStoreUnavailable, storeRetry, "the store of receipts cannot be used")
	rep.err = err
	return rep
}

func heldForPerson(after time.Duration) *reply {
	rep := retryLater(codeInDoubt, after, "held for a person to decide")
	rep.result = resultHeld
	return rep
}

// retryAfter gives whole seconds, rounded up, at least 1 (RFC 9110, section 10.2.3).
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(max(int64((d+time.Second-1)/time.Second), 1), 10)
}

// validRetryAfter tells whether an app's own value is one: seconds or a date.
func validRetryAfter(v string) bool {
	if _, err := strconv.ParseUint(v, 10, 32); err == nil {
		return true
	}
	_, err := http.ParseTime(v)
	return err == nil
}

// replay gives the app's stored answer to a delivery that was not its attempt.
func replay(a *dedup.Answer, r result) *reply {
	rep := appAnswer(a, r)
	rep.header.Set(headerReceipt, "duplicate")
	return rep
}

// appAnswer gives the app's answer as it is stored, or would be.
func appAnswer(a *dedup.Answer, r result) *reply {
	rep := &reply{status: a.Status, header: make(http.Header, len(a.Header)+2), body: a.Body, result: r}
	for _, f := range a.Header {
		rep.header.Add(f.Name, f.Value)
	}
	if a.BodyDropped {
		rep.header.Set(headerReceiptBody, "dropped")
		rep.reason = "the app's body is above max_receipt and was dropped"
	}
	return rep
}

// confirmed answers a callback with what stands now.
func confirmed(r dedup.Receipt) *reply {
	body, _ := json.Marshal(struct { // a word: cannot fail
		State string `json:"state"`
	}{r.State.String()})
	rep := &reply{status: http.StatusOK, header: make(http.Header, 2), body: body}
	switch rep.result = resultAborted; r.State {
	case dedup.StateCommitted:
		rep.result = resultCommitted
	case dedup.StateRejected:
		rep.result = resultRejected
	}
	rep.header.Set("Content-Type", "application/json")
	return rep
}

func handshakeReply(a verifier.Reply) *reply {
	rep := &reply{status: a.Status, header: make(http.Header, 3), body: a.Body, result: resultHandshake}
	if a.ContentType != "" {
		rep.header.Set("Content-Type", a.ContentType)
		rep.header.Set("X-Content-Type-Options", "nosniff")
	}
	return rep
}

func acknowledged() *reply {
	return &reply{status: http.StatusOK, header: make(http.Header, 1), result: resultAcknowledged, reason: "event type is not among `events`"}
}

// answer writes the reply. The error of a write is the sender's loss only: what matters is already on disk.
func (d *delivery) answer(rep *reply) error {
	d.report.reply = rep
	d.given.Store(rep)
	failpoint.Hit(failpoint.AnswerBefore)
	err := rep.write(d.w)
	failpoint.HitAfter(failpoint.AnswerAfter, http.NewResponseController(d.w).Flush)
	return err
}

func (rep *reply) write(w http.ResponseWriter) error {
	header := w.Header()
	for name, values := range rep.header {
		header[name] = values
	}
	if rep.status != http.StatusNoContent && rep.status != http.StatusNotModified {
		header.Set("Content-Length", strconv.Itoa(len(rep.body)))
	}
	w.WriteHeader(rep.status)
	failpoint.HitAfter(failpoint.AnswerBegun, http.NewResponseController(w).Flush)
	if len(rep.body) > 0 {
		_, _ = w.Write(rep.body)
	}
	return nil
}
