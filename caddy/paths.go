package caddy

import (
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// routePaths are the paths that a route's matchers let in.
func routePaths(route caddyhttp.Route) paths {
	var all paths
	for _, set := range route.MatcherSets {
		at := setPaths(set)
		if at == nil {
			return anyPath
		}
		all = append(all, at...)
	}
	return all
}

func setPaths(set caddyhttp.MatcherSet) paths {
	for _, matcher := range set {
		switch m := matcher.(type) {
		case caddyhttp.MatchPath:
			return paths(m)
		case *caddyhttp.MatchPath:
			return paths(*m)
		}
	}
	return anyPath
}

// narrower is the inner restriction where there is one.
func narrower(outer, inner paths) paths {
	if inner == nil {
		return outer
	}
	return inner
}

// overlap tells whether one path may match both. Where patterns are more than a prefix, it says yes.
func overlap(a, b paths) bool {
	if a == nil || b == nil {
		return (a == nil || len(a) > 0) && (b == nil || len(b) > 0)
	}
	for _, x := range a {
		for _, y := range b {
			if patternsOverlap(x, y) {
				return true
			}
		}
	}
	return false
}

func patternsOverlap(x, y string) bool {
	x, exactX := literal(x)
	y, exactY := literal(y)
	switch {
	case exactX && exactY:
		return x == y
	case exactX:
		return strings.HasPrefix(x, y)
	case exactY:
		return strings.HasPrefix(y, x)
	}
	return strings.HasPrefix(x, y) || strings.HasPrefix(y, x)
}

// literal is a pattern up to its first wildcard; exact if it has none. Caddy matches paths without case.
func literal(pattern string) (prefix string, exact bool) {
	pattern = strings.ToLower(pattern)
	if i := strings.IndexAny(pattern, `*?[\{%`); i >= 0 {
		return pattern[:i], false
	}
	return pattern, true
}
