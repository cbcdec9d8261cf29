package caddy

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// misrouted tells whether no server of this config takes a request for the URL to a Callback. Something that the config
// does not know may lead it there; if not, nobody is told: Caddy answers what no route matches with an empty 200.
func misrouted(app *caddyhttp.App, at url.URL) bool {
	port, err := strconv.ParseUint(portOf(at), 10, 16)
	if err != nil {
		return false
	}
	for _, server := range app.Servers {
		if !listensOn(server, uint(port)) {
			continue
		}
		if (search{server: server, request: probe(at, server)}).routes(server.Routes) {
			return false
		}
	}
	return true
}

func portOf(at url.URL) string {
	switch {
	case at.Port() != "":
		return at.Port()
	case at.Scheme == "https":
		return "443"
	}
	return "80"
}

func listensOn(server *caddyhttp.Server, port uint) bool {
	for _, listen := range server.Listen {
		addr, err := caddy.ParseNetworkAddress(listen)
		if err == nil && !addr.IsUnixNetwork() && addr.StartPort <= port && port <= addr.EndPort {
			return true
		}
	}
	return false
}

// probe is a confirmation as it would arrive, to be held against matchers; it is served by nobody.
func probe(at url.URL, server *caddyhttp.Server) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: at.Path}, Host: at.Host, RequestURI: at.RequestURI(),
		Header: http.Header{}, Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "127.0.0.1:1",
	}
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, server)
}

// search follows the routes of a server that match a request.
type search struct {
	server  *caddyhttp.Server
	request *http.Request
	invoked []string // named routes on the way here
}

// routes tells whether the request may reach a Callback in them. Behind a rewrite of its path that is not followed.
func (s search) routes(list caddyhttp.RouteList) bool {
	ran := map[string]bool{} // of a group's routes only the first that matches runs
	for _, route := range list {
		if route.Group != "" && ran[route.Group] {
			continue
		}
		if match, err := route.MatcherSets.AnyMatchWithError(s.request); err != nil || !match {
			continue
		}
		ran[route.Group] = true
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Callback:
				return true
			case *rewrite.Rewrite:
				if movesPath(h) {
					return true
				}
			case *caddyhttp.Subroute:
				if s.routes(h.Routes) {
					return true
				}
			case *caddyhttp.Invoke:
				if s.invoke(h.Name) {
					return true
				}
			}
		}
		if route.Terminal {
			return false
		}
	}
	return false
}

func (s search) invoke(name string) bool {
	route := s.server.NamedRoutes[name]
	if route == nil || slices.Contains(s.invoked, name) {
		return false
	}
	s.invoked = append(slices.Clone(s.invoked), name)
	return s.routes(caddyhttp.RouteList{*route})
}
