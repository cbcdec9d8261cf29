package caddy

import (
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// report collects what the one log line of a delivery says. Never a secret, a signature or a body: the reasons
// that reach it are built from names, offsets and times.
type report struct {
	logger   *zap.Logger
	reply    *reply
	secret   int // position of the matching secret, -1 before one matched
	skew     time.Duration
	attempts uint32
	read     time.Duration // until the body was complete
	forward  time.Duration // the app's share
}

// write logs the delivery, and puts the same ids on Caddy's access-log line.
func (p *report) write(d *delivery) {
	if p.reply == nil {
		return // a panic is on its way; whoever recovers it logs it
	}
	if extra, ok := d.r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.String("webhook_event", d.identity.Event))
		extra.Set(zap.String("webhook_result", string(p.reply.result)))
	}
	entry := p.logger.Check(p.level(), "delivery")
	if entry == nil {
		return
	}
	fields := make([]zap.Field, 0, 14)
	fields = append(fields,
		zap.String("source", d.set.source),
		zap.String("result", string(p.reply.result)),
		zap.Int("status", p.reply.status))
	if d.identity.Event != "" {
		fields = append(fields, zap.String("event", d.identity.Event), zap.String("type", d.identity.Type))
	}
	if p.reply.code != "" {
		fields = append(fields, zap.String("code", string(p.reply.code)))
	}
	if p.reply.reason != "" {
		fields = append(fields, zap.String("reason", p.reply.reason))
	}
	if p.attempts > 0 {
		fields = append(fields, zap.Uint32("attempt", p.attempts))
	}
	if p.secret >= 0 {
		fields = append(fields, zap.Int("secret", p.secret+1))
	}
	if p.skew != 0 {
		fields = append(fields, zap.Duration("skew", p.skew))
	}
	fields = append(fields, zap.Duration("read", p.read))
	if p.forward > 0 {
		fields = append(fields, zap.Duration("forward", p.forward))
	}
	fields = append(fields, zap.Duration("duration", time.Since(d.began)))
	if p.reply.err != nil {
		fields = append(fields, zap.Error(p.reply.err))
	}
	entry.Write(fields...)
}

// level is error where an operator must act, warn where one should look, info for what is counted.
func (p *report) level() zapcore.Level {
	switch p.reply.result {
	case resultFailed:
		return zapcore.ErrorLevel
	case resultConflict, resultInDoubt, resultHeld, resultAborted:
		return zapcore.WarnLevel
	default:
		return zapcore.InfoLevel
	}
}
