package caddy

import (
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// report collects what the one log line of a delivery says. Never a secret, a signature or a body: the reasons
// that reach it are built from names, offsets, times and network addresses.
type report struct {
	logger   *zap.Logger
	reply    *reply
	secret   int // position of the matching secret, -1 before one matched
	skew     time.Duration
	attempts uint32
	of       string        // the event that the replay guard takes this one for, where that is another
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
	fields := make([]zap.Field, 0, 16)
	fields = append(fields, zap.String("source", d.set.source))
	if d.identity.Event != "" {
		fields = append(fields, zap.String("event", d.identity.Event), zap.String("type", d.identity.Type))
	}
	if p.of != "" {
		fields = append(fields, zap.String("event_of", p.of))
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
	fields = append(fields, zap.Duration("duration", time.Since(d.began)), zap.String("remote_ip", remoteIP(d.r)))
	logAt(p.logger, p.reply, "delivery", fields...)
}

// remoteIP is the sender's address, as Caddy's trusted_proxies tell it.
func remoteIP(r *http.Request) string {
	if ip, ok := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string); ok && ip != "" {
		return ip
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// logAt writes a line about a reply: what came of it first, then the fields, then what is wrong.
func logAt(logger *zap.Logger, rep *reply, message string, fields ...zap.Field) {
	entry := logger.Check(level(rep.result), message)
	if entry == nil {
		return
	}
	all := make([]zap.Field, 0, len(fields)+5)
	all = append(all, zap.String("result", string(rep.result)), zap.Int("status", rep.status))
	if rep.code != "" {
		all = append(all, zap.String("code", string(rep.code)))
	}
	if rep.reason != "" {
		all = append(all, zap.String("reason", rep.reason))
	}
	all = append(all, fields...)
	if rep.err != nil {
		all = append(all, zap.Error(rep.err))
	}
	entry.Write(all...)
}

// level is error where an operator must act, warn where one should look, info for what is counted.
func level(r result) zapcore.Level {
	switch r {
	case resultFailed:
		return zapcore.ErrorLevel
	case resultConflict, resultInDoubt, resultHeld, resultAborted:
		return zapcore.WarnLevel
	default:
		return zapcore.InfoLevel
	}
}
