package caddy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/event"
	"github.com/einlass/einlass/dedup/failpoint"
	"github.com/einlass/einlass/verifier"
)

// checkMethod lets POST through, and what the sender's handshake needs.
func (h *Handler) checkMethod(d *delivery) *reply {
	if d.r.Method == http.MethodPost {
		return nil
	}
	allow := []string{http.MethodPost}
	if shake := h.facts.Handshake; shake != nil {
		for _, method := range shake.Methods {
			if d.r.Method == method {
				return nil
			}
		}
		allow = append(allow, shake.Methods...)
	}
	rep := refuse(codeMethod, "the method is not one a webhook uses")
	rep.header.Set("Allow", strings.Join(allow, ", "))
	return d.unread(rep)
}

// checkHeaders refuses what the headers alone show to be wrong, before a byte of the body is read.
func (h *Handler) checkHeaders(d *delivery) *reply {
	if rep := h.beforeSignature(d); rep != nil {
		return rep
	}
	check, err := h.verifier.Begin(d.signed)
	if err != nil {
		return d.unread(refuseSignature(err))
	}
	d.check = check
	if d.r.ContentLength > d.set.maxBody {
		return d.unread(refuse(codeBodySize, "Content-Length is above max_body"))
	}
	return nil
}

// beforeSignature answers handshakes that the sender does not sign.
func (h *Handler) beforeSignature(d *delivery) *reply {
	shake := h.facts.Handshake
	if shake == nil || shake.Signed || d.r.Method == http.MethodPost {
		return nil
	}
	if answer, ok := shake.Answer(d.signed, nil); ok {
		return d.unread(handshakeReply(answer))
	}
	return d.unread(refuse(codeHandshake, "not the handshake that this sender makes"))
}

// verify is the end of the check that the body was fed to while it was read.
func (h *Handler) verify(d *delivery) *reply {
	failpoint.Hit(failpoint.DeliveryRead)
	result, err := d.check.Finish(d.body)
	if err != nil {
		return refuseSignature(err)
	}
	d.report.secret, d.report.skew = result.Secret, result.Skew
	return nil
}

func refuseSignature(err error) *reply {
	var refused *verifier.Error
	if !errors.As(err, &refused) {
		return refuse(codeAuthentication, "verifier failed")
	}
	if refused.Reason == verifier.ReasonRepeatedHeader {
		return refuse(codeAmbiguousHeader, refused.Error())
	}
	return refuse(codeAuthentication, refused.Error())
}

// handshake answers what the sender demands of an endpoint, after its signature held.
func (h *Handler) handshake(d *delivery) *reply {
	shake := h.facts.Handshake
	if shake == nil || !shake.Signed {
		return nil
	}
	if answer, ok := shake.Answer(d.signed, d.body); ok {
		return handshakeReply(answer)
	}
	if d.r.Method != http.MethodPost {
		return refuse(codeHandshake, "not the handshake that this sender makes")
	}
	return nil
}

// identify reads who the event is. JSON is read strictly where the id stands in it; a type that cannot be
// read matters only where `events` asks for it.
func (h *Handler) identify(d *delivery) *reply {
	d.doc = event.NewDocument(d.r.Header, d.body)
	id, err := d.doc.Find(d.set.idAt)
	if err != nil {
		return refuseContent("event_id", err)
	}
	if err := event.ValidID(id); err != nil {
		return refuse(codeEventContract, "event_id: "+err.Error())
	}
	typ := ""
	if !d.set.typeAt.IsZero() {
		if typ, err = d.doc.Find(d.set.typeAt); err == nil {
			err = event.ValidID(typ) // it goes into a header, too
		}
		if err != nil { // a matter of the contract, and only where `events` asks for the type
			typ, d.typeErr = "", err
		}
	}
	d.identity = dedup.Identity{
		Key:         dedup.Key{Source: d.set.source, Event: id},
		Type:        typ,
		Digest:      d.doc.Digest(),
		Fingerprint: d.set.compare.Fingerprint(d.doc),
		ByID:        d.set.compare.ByID(),
		Guard:       d.set.guard,
	}
	return nil
}

func refuseContent(what string, err error) *reply {
	switch {
	case errors.Is(err, event.ErrInvalidJSON):
		return refuse(codeInvalidJSON, what+": "+err.Error())
	case errors.Is(err, event.ErrAmbiguous):
		return refuse(codeAmbiguousHeader, what+": "+err.Error())
	default:
		return refuse(codeEventContract, what+": "+err.Error())
	}
}

// lookUp answers what is already decided, without waiting for anybody's write. What is in doubt is asked about first.
func (h *Handler) lookUp(d *delivery) *reply {
	shared, err := d.hold()
	if err != nil {
		return storeUnavailable(err)
	}
	ctx, cancel := d.storing()
	defer cancel()
	verdict, err := shared.gate.LookUp(ctx, d.identity, d.set.policy)
	if err != nil {
		return storeUnavailable(err)
	}
	if d.set.policy.InDoubt == dedup.Ask && (verdict.Kind == dedup.InDoubt || verdict.Accepted) {
		if verdict, err = shared.gate.Ask(ctx, d.identity, d.set.policy); err != nil {
			return storeUnavailable(err)
		}
	}
	d.known = verdict.Kind != dedup.First
	switch verdict.Kind {
	case dedup.First, dedup.Again:
		return nil
	case dedup.Running:
		return d.await()
	default:
		return d.decided(verdict)
	}
}

// checkContract holds a new event against `events` and `contract`. A known one was let in before.
func (h *Handler) checkContract(d *delivery) *reply {
	if d.known {
		return nil
	}
	if d.set.types != nil && d.typeErr != nil {
		return refuseContent("event_type", d.typeErr)
	}
	if d.set.types != nil && !d.set.types[d.identity.Type] {
		if d.set.acknowledge {
			return acknowledged()
		}
		return refuse(codeEventContract, "event type is not among `events`")
	}
	if d.set.contract == nil {
		return nil
	}
	err := d.set.contract.Check(d.doc)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, event.ErrInvalidJSON):
		return refuse(codeInvalidJSON, err.Error())
	default:
		return refuse(codeEventContract, err.Error())
	}
}

// reserve makes this delivery the attempt, durably, or gives what it meets instead.
func (h *Handler) reserve(d *delivery) *reply {
	if !time.Now().Before(d.answers) {
		return retryLater(codeTemporaryFailure, d.set.retryAfter, "the time to answer within was over before the attempt")
	}
	ctx, cancel := d.storing()
	defer cancel()
	verdict, err := d.shared.gate.Reserve(ctx, d.identity, d.set.policy)
	if err != nil {
		return storeUnavailable(err)
	}
	switch verdict.Kind {
	case dedup.Forward:
		d.attempt = verdict.Attempt
		return nil
	case dedup.Running:
		return d.await()
	default:
		return d.decided(verdict)
	}
}

// await waits for the attempt that another delivery of the event is running, and takes its end for its own.
func (d *delivery) await() *reply {
	ctx, cancel := d.waiting(d.set.wait)
	defer cancel()
	verdict, err := d.shared.gate.Wait(ctx, d.identity, d.set.policy)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return retryLater(codeInProgress, d.set.retryAfter, "another delivery's attempt is still running")
	case err != nil:
		return storeUnavailable(err)
	}
	return d.decided(verdict)
}

// decided turns a verdict that is not this delivery's own attempt into an answer.
func (d *delivery) decided(v dedup.Verdict) *reply {
	d.report.attempts = v.Receipt.Attempts
	if known := v.Receipt.Event; known != "" && known != d.identity.Event {
		d.report.of = known // the same bytes came under that id first
	}
	switch v.Kind {
	case dedup.Replay:
		return replay(v.Receipt.Answer, resultRepeated)
	case dedup.Conflict:
		return refuse(codeEventConflict, "the id is known with other content")
	case dedup.Held:
		return heldForPerson(d.set.retryAfter)
	case dedup.InDoubt:
		return retryLater(codeInDoubt, or(v.RetryAfter, d.set.retryAfter), "an earlier attempt's end is unknown")
	case dedup.Aborted:
		return retryLater(codeTemporaryFailure, d.set.retryAfter, "the attempt that was waited for did not succeed")
	default:
		return retryLater(codeInProgress, d.set.retryAfter, "the attempt that was waited for gave way to another")
	}
}
