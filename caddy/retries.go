package caddy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// checkRetries refuses a proxy behind a gate that repeats more than failed dials: an attempt leaves the gate at most
// once. It reads the routes as they were provisioned. A proxy that is told apart from every gate by its path, or by
// being the other of two `handle` blocks, is nobody's next handler and may repeat what it likes.
func checkRetries(app *caddyhttp.App) error {
	for name, server := range app.Servers {
		w := walk{named: server.NamedRoutes}
		if _, _, err := w.routes(server.Routes, nil, anyPath); err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
	}
	return nil
}

// walk goes through the routes of a server in the order in which a request meets them.
type walk struct {
	named   map[string]*caddyhttp.Route
	invoked []string // named routes on the way here
}

// paths are the patterns that a request's path must match one of; nil is any path.
type paths []string

var anyPath paths

// gate is a gate that a request may have come through, with the paths that it may have.
type gate struct {
	at     paths
	method bool // the request's method may be another one than POST by now
}

// nowhere is a gate that no request here has come through.
var nowhere = &gate{at: paths{}}

// routes gives the gates that a request has behind it after these routes, given those before it, and tells whether its
// path may be another one then.
func (w walk) routes(list caddyhttp.RouteList, before []*gate, at paths) (_ []*gate, moved bool, err error) {
	all := slices.Clone(before)
	for i, g := range all {
		if !overlap(g.at, at) {
			all[i] = nowhere
		}
	}
	groups := map[string][]*gate{} // what a group's routes have added: only one of them runs
	for _, route := range list {
		behind := all
		if route.Group != "" {
			behind = slices.DeleteFunc(slices.Clone(all), func(g *gate) bool { return slices.Contains(groups[route.Group], g) })
		}
		after, moves, err := w.route(route, behind, narrower(at, routePaths(route)))
		switch {
		case err != nil:
			return nil, false, err
		case route.Terminal:
			continue
		case moves:
			at, moved = anyPath, true
		}
		added := after[len(behind):]
		all = append(all, added...)
		groups[route.Group] = append(groups[route.Group], added...)
	}
	return all, moved, nil
}

func (w walk) route(route caddyhttp.Route, gates []*gate, at paths) (_ []*gate, moved bool, err error) {
	gates = slices.Clone(gates)
	for _, handler := range route.Handlers {
		moves := false
		switch h := handler.(type) {
		case *Handler:
			gates = append(gates, &gate{at: at})
		case *rewrite.Rewrite:
			if moves = movesPath(h); moves {
				gates = move(gates, at)
			}
			if otherMethod(h) {
				gates = remethod(gates, at)
			}
		case *caddyhttp.Subroute:
			gates, moves, err = w.routes(h.Routes, gates, at)
		case *caddyhttp.Invoke:
			gates, moves, err = w.invoke(h.Name, gates, at)
		case *reverseproxy.Handler:
			err = w.proxy(h, gates, at)
		}
		if err != nil {
			return nil, false, err
		}
		if moves {
			at, moved = anyPath, true
		}
	}
	return gates, moved, nil
}

func (w walk) invoke(name string, gates []*gate, at paths) ([]*gate, bool, error) {
	route := w.named[name]
	if route == nil || slices.Contains(w.invoked, name) {
		return gates, false, nil
	}
	w.invoked = append(slices.Clone(w.invoked), name)
	return w.route(*route, gates, at)
}

// movesPath tells whether the path may be another one behind a rewrite (`handle_path` is one, too).
func movesPath(h *rewrite.Rewrite) bool {
	return h.URI != "" || h.StripPathPrefix != "" || h.StripPathSuffix != "" || len(h.URISubstring)+len(h.PathRegexp) > 0
}

// move adds a gate at any path, if a request whose path is rewritten may have come through one.
func move(gates []*gate, at paths) []*gate {
	if slices.ContainsFunc(gates, func(g *gate) bool { return overlap(g.at, at) }) {
		return append(gates, &gate{at: anyPath})
	}
	return gates
}

// otherMethod tells whether the method may be another one than POST behind a rewrite: Caddy repeats a GET on any error.
func otherMethod(h *rewrite.Rewrite) bool {
	return h != nil && h.Method != "" && !strings.EqualFold(h.Method, http.MethodPost)
}

// remethod adds to the gates that a request may have come through that its method may be another one.
func remethod(gates []*gate, at paths) []*gate {
	for _, g := range gates {
		if overlap(g.at, at) {
			gates = append(gates, &gate{at: g.at, method: true})
		}
	}
	return gates
}

// proxy refuses a proxy that repeats, where a gate may be before it.
func (w walk) proxy(h *reverseproxy.Handler, gates []*gate, at paths) error {
	reached := slices.ContainsFunc(gates, func(g *gate) bool { return overlap(g.at, at) })
	reachedOther := slices.ContainsFunc(gates, func(g *gate) bool { return g.method && overlap(g.at, at) })
	switch {
	case reached && retries(h) && (reachedOther || otherMethod(h.Rewrite)):
		return errors.New("reverse_proxy behind webhook_gate sends another method than POST, which Caddy repeats on any error, and an app may get one event twice: leave out lb_retries and lb_try_duration, or the change of the method")
	case reached && repeats(h, at):
		return errors.New("reverse_proxy behind webhook_gate repeats more than failed dials (lb_retry_match), and an app may get one event twice: leave lb_retry_match out or give it `method GET`; lb_retries and lb_try_duration alone repeat only what was not sent")
	}
	for _, handle := range h.HandleResponse {
		if _, _, err := w.routes(handle.Routes, gates, at); err != nil {
			return err
		}
	}
	return nil
}

// repeats tells whether the proxy may send a POST to one of these paths again after it was sent.
func repeats(h *reverseproxy.Handler, at paths) bool {
	if !retries(h) {
		return false
	}
	if h.Rewrite != nil { // what it matches may be the path that it rewrites to
		at = anyPath
	}
	return slices.ContainsFunc(h.LoadBalancing.RetryMatch, func(set caddyhttp.MatcherSet) bool {
		return allowsPost(set) && overlap(setPaths(set), at)
	})
}

func retries(h *reverseproxy.Handler) bool {
	lb := h.LoadBalancing
	return lb != nil && (lb.Retries != 0 || lb.TryDuration != 0)
}

func allowsPost(set caddyhttp.MatcherSet) bool {
	for _, matcher := range set {
		var methods caddyhttp.MatchMethod
		switch m := matcher.(type) {
		case caddyhttp.MatchMethod:
			methods = m
		case *caddyhttp.MatchMethod:
			methods = *m
		default:
			continue
		}
		if !slices.Contains(methods, http.MethodPost) {
			return false
		}
	}
	return true
}
