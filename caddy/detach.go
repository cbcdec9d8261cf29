package caddy

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// forwardRequest builds the request as the app gets it, with a replacer, variables and log fields of its own:
// those of the delivery are in use by the handlers around the gate, maybe after the sender was answered.
func forwardRequest(ctx context.Context, d *delivery, a *attempt) *http.Request {
	r := d.r.WithContext(ctx) // a shallow copy; what handlers behind the gate may change is copied below
	target := *d.r.URL
	r.URL = &target
	r.Header = forwardHeaders(d.r.Header, a.Attempt, d.answers, d.set.callback)
	r.Trailer = nil
	r.TransferEncoding = nil
	r.ContentLength = int64(len(d.body))
	r.Body = http.NoBody
	if len(d.body) > 0 {
		// Not rewindable: an attempt leaves the gate at most once (no GetBody, ever).
		r.Body = io.NopCloser(bytes.NewReader(d.body))
	}
	r.GetBody = nil

	return isolate(r, a.rec)
}

// routeGroup is Caddy's key for the groups of routes of which one has run already (caddyhttp, routes.go).
const routeGroup = caddy.CtxKey("route_group")

// isolate gives a request a replacer and variables of its own, filled with what they were, and log fields of its own.
func isolate(r *http.Request, w http.ResponseWriter) *http.Request {
	before := r.Context()
	server, _ := before.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	repl := caddy.NewReplacer()
	r = caddyhttp.PrepareRequest(r, repl, w, server)
	if outer, ok := before.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		// What earlier handlers set stays readable. WithoutFile for the copy it makes: handlers around the gate may
		// go on to give the original further sources while the attempt reads.
		repl.Map(outer.WithoutFile().Get)
	}
	ctx := r.Context()
	if vars, ok := before.Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, maps.Clone(vars))
	}
	if groups, ok := before.Value(routeGroup).(map[string]struct{}); ok {
		ctx = context.WithValue(ctx, routeGroup, maps.Clone(groups))
	}
	if original := before.Value(caddyhttp.OriginalRequestCtxKey); original != nil {
		ctx = context.WithValue(ctx, caddyhttp.OriginalRequestCtxKey, original)
	}
	// In place: the replacer knows this very request, and puts a body that it has read back into it.
	*r = *r.WithContext(ctx)
	return r
}
