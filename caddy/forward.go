package caddy

import (
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/einlass/einlass/dedup"
)

// forward runs the attempt and answers the sender: with its outcome, or at answer_within without.
func (h *Handler) forward(d *delivery, next caddyhttp.Handler) *reply {
	select {
	case <-d.attempt.Confirmed(): // an earlier attempt's confirmation came while this one was being reserved
		d.attempt.Leave()
		return d.await()
	default:
	}
	a, err := h.launch(d, next)
	if err != nil {
		return storeUnavailable(err)
	}
	d.report.attempts = a.Count

	timer := time.NewTimer(time.Until(d.answers))
	defer timer.Stop()
	reason := "the app has not answered within answer_within; the attempt goes on"
	confirmed := false
	select {
	case rep := <-a.done:
		d.report.forward = a.took
		if a.later {
			return d.awaitConfirmation(a, rep, timer.C)
		}
		return rep
	case <-a.Confirmed():
		confirmed = true
	case <-d.r.Context().Done():
		reason = "the sender has hung up; the attempt goes on"
	case <-timer.C:
	}
	if !a.left.CompareAndSwap(false, true) { // the end came at the same time
		rep := <-a.done
		d.report.forward = a.took
		if !confirmed || !a.later {
			return rep
		}
	}
	if confirmed {
		return a.confirmed()
	}
	return retryLater(codeInProgress, d.set.retryAfter, reason)
}

// awaitConfirmation waits for the callback of an app that has taken the event. Without it, rep is the answer.
func (d *delivery) awaitConfirmation(a *attempt, rep *reply, answer <-chan time.Time) *reply {
	select {
	case <-a.Confirmed():
		return a.confirmed()
	case <-d.r.Context().Done():
	case <-answer:
	}
	return rep
}

// confirmed answers with what the app said in a callback.
func (a *attempt) confirmed() *reply {
	ctx, cancel := confirming(a.request.Context())
	defer cancel()
	receipt, err := a.Stands(ctx)
	switch {
	case err != nil:
		return storeUnavailable(err)
	case receipt.State.Final():
		return a.final(receipt, nil)(resultOf(receipt))
	case receipt.State == dedup.StateOpen:
		return retryLater(codeTemporaryFailure, a.set.retryAfter, "the app says that nothing came of the attempt")
	}
	return retryLater(codeInDoubt, a.set.retryAfter, "the app said something of another attempt")
}

// compare holds an answer against the receipt of another attempt that came before it: a different one proves a second
// effect. An attempt that said aborted in its callback has no receipt before it, and its answer says nothing.
func (a *attempt) compare(c concluded) {
	ctx, cancel := confirming(a.request.Context())
	defer cancel()
	receipt, err := a.Stands(ctx)
	if err != nil || !receipt.State.Final() || receipt.AnsweredBy(a.Number) {
		return
	}
	switch answer := a.rec.answer(a.set.receiptHeaders); c.outcome {
	case outcomeCommitted:
		a.Compare(dedup.Commit, answer, receipt)
	case outcomeRejected:
		a.Compare(dedup.Reject, answer, receipt)
	}
}

func resultOf(r dedup.Receipt) result {
	if r.State == dedup.StateRejected {
		return resultRejected
	}
	return resultCommitted
}
