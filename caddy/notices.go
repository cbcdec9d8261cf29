package caddy

import (
	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
)

// notify logs what no request is there to be told of. The store outlives every config, so it logs by the one that is
// current.
func notify(n dedup.Notice) {
	log := caddy.Log().Named(appName).With(zap.String("source", n.Key.Source), zap.String("event", n.Key.Event))
	if n.Attempt != 0 {
		log = log.With(zap.Uint64("number", n.Attempt))
	}
	switch n.Kind {
	case dedup.NoticeReceiptDiffers:
		log.Error("receipt_differs: an attempt confirmed something else than the stored receipt; two receipts prove two effects",
			zap.String("stands", n.Receipt.State.String()), zap.Uint64("stands_number", n.Receipt.Decided))
	case dedup.NoticeAttemptClosed:
		log.Error("attempt_closed: the app confirmed an attempt that it had refused for good; the confirmation was not stored",
			zap.String("stands", n.Receipt.State.String()))
	case dedup.NoticeResolved:
		log.Info("outcome learned by asking the app", zap.String("state", n.Receipt.State.String()), zap.Uint32("attempts", n.Receipt.Attempts))
	case dedup.NoticeHeld:
		log.Warn("the end of an attempt is unknown and its lease is over: the event is held for a person", zap.Uint32("attempts", n.Receipt.Attempts))
	case dedup.NoticeUnanswered:
		log.Warn("the outcome question was not answered; it is put again", zap.Error(n.Err))
	case dedup.NoticeScanFailed:
		log.Error("events in doubt cannot be read from the store; it is tried again", zap.Error(n.Err))
	}
}
