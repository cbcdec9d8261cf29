package caddy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

func init() {
	caddy.OnExit(drainAtExit)
}

// exitLimit is until when running attempts are waited for at the end of the process; nil is for as long as they run.
var exitLimit atomic.Pointer[time.Time]

// drainAtExit waits for the attempts that still run, of this config and of earlier ones: an attempt may go on after
// its sender was answered, and then no request keeps the server waiting for it. Caddy calls it after every app has
// stopped, so no new attempt can begin; an App's Stop may come before the server's, while new ones do.
func drainAtExit(ctx context.Context) {
	if limit := exitLimit.Load(); limit != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, *limit)
		defer cancel()
	}
	var open []*sharedStore
	stores.Range(func(_, value any) bool {
		open = append(open, value.(*sharedStore))
		return true
	})
	log := caddy.Log().Named(appName)
	for _, shared := range open {
		n := shared.gate.Running()
		if n == 0 {
			continue
		}
		log.Info("waiting for running attempts", zap.String("store", shared.key), zap.Int("attempts", n))
		if err := shared.gate.Drain(ctx); err != nil {
			log.Warn("grace period over with attempts running: they stay reserved and are in doubt at the next start",
				zap.String("store", shared.key), zap.Int("attempts", shared.gate.Running()))
		}
	}
}
