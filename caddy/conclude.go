package caddy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/einlass/einlass/dedup"
)

// conclude stores the outcome and gives the sender's answer. A 2xx leaves here only when its receipt is on
// disk. The request's context may be over by now; what is to be stored is stored all the same.
func (a *attempt) conclude(c concluded) *reply {
	ctx := context.WithoutCancel(a.request.Context())
	switch c.outcome {
	case outcomeCommitted:
		return a.final(a.Commit(ctx, a.rec.answer(a.set.receiptHeaders)))(resultCommitted)
	case outcomeRejected:
		return a.final(a.Reject(ctx, a.rec.answer(a.set.receiptHeaders)))(resultRejected)
	case outcomeAborted:
		if c.ask && a.set.policy.InDoubt == dedup.Ask {
			return a.ask(ctx, c)
		}
		return a.abort(ctx, c)
	case outcomeAccepted:
		a.later = true
		a.Accept()
		return retryLater(codeInProgress, a.set.retryAfter, c.reason)
	case outcomePending:
		a.later = a.set.callback != nil
		if err := a.Pending(ctx, a.set.policy.Lease); err != nil {
			return storeUnavailable(err)
		}
		return retryLater(codeInProgress, a.set.retryAfter, c.reason)
	default:
		a.Leave()
		reason := c.reason
		if errors.Is(a.request.Context().Err(), context.DeadlineExceeded) {
			reason = "forward_timeout is over: " + reason
		}
		return retryLater(codeInDoubt, min(a.set.policy.Lease-a.took, time.Minute), reason)
	}
}

// abort frees the event and passes on what the app said.
func (a *attempt) abort(ctx context.Context, c concluded) *reply {
	if err := a.Abort(ctx); err != nil {
		return storeUnavailable(err)
	}
	if stands := a.Receipt(); stands.State.Final() { // a callback came first
		return a.final(stands, nil)(resultOf(stands))
	}
	return a.aborted(c)
}

// ask puts the outcome question before the app's failure is believed: it may have committed first.
func (a *attempt) ask(ctx context.Context, c concluded) *reply {
	// Not in the attempt's context: its connection trace is about the attempt.
	said, err := a.Ask(context.Background(), a.set.policy.Asker)
	if err != nil {
		a.Leave()
		return retryLater(codeInDoubt, a.set.retryAfter, c.reason+", and "+err.Error())
	}
	receipt, err := a.Settle(ctx, said, a.set.policy.Lease)
	switch {
	case err != nil:
		return storeUnavailable(err)
	case receipt.State.Final():
		return replay(receipt.Answer, resultOf(receipt))
	case said.Kind == dedup.ReplyPending:
		a.later = a.set.callback != nil
		return retryLater(codeInProgress, a.set.retryAfter, c.reason+", and that it is still at work")
	}
	return a.aborted(c)
}

// final answers with what is stored: this attempt's answer, or that of another attempt that was final first.
func (a *attempt) final(receipt dedup.Receipt, err error) func(result) *reply {
	return func(r result) *reply {
		switch {
		case errors.Is(err, dedup.ErrAttemptClosed):
			return retryLater(codeInDoubt, a.set.retryAfter, "the app committed an attempt that it had refused for good")
		case err != nil:
			return storeUnavailable(err)
		case receipt.Answer == nil:
			return storeUnavailable(errors.New("the store gave a final receipt without an answer"))
		case !receipt.AnsweredBy(a.Number):
			return replay(receipt.Answer, resultRepeated)
		}
		return appAnswer(receipt.Answer, r)
	}
}

// aborted passes on the app's own refusal, with a Retry-After where trying again makes sense and it has none.
func (a *attempt) aborted(c concluded) *reply {
	status := a.rec.status
	switch {
	case status >= 300 && status < 400:
		return retryLater(codeUpstreamRedirect, a.set.retryAfter, c.reason)
	case status < 400:
		return retryLater(codeTemporaryFailure, a.set.retryAfter, c.reason)
	}
	answer := a.rec.answer(a.set.receiptHeaders)
	rep := appAnswer(&answer, resultAborted)
	if rep.reason = c.reason; answer.BodyDropped {
		rep.reason += ", and its body is above max_receipt and was dropped"
	}
	if after := a.rec.header.Get("Retry-After"); validRetryAfter(after) {
		rep.header.Set("Retry-After", after)
	} else if status >= 500 || status == http.StatusTooManyRequests {
		rep.header.Set("Retry-After", retryAfter(a.set.retryAfter))
	}
	return rep
}
