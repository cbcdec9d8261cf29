package caddy

import (
	"net/url"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func TestAConfirmURLThatReachesNoCallbackIsSeen(t *testing.T) {
	for _, c := range []struct {
		name, sites, at string
		misrouted       bool
	}{
		{"its own site", "http://127.0.0.1:9081 {\n webhook_gate_callback\n}", "http://127.0.0.1:9081", false},
		{"any host", ":9081 {\n webhook_gate_callback\n}", "http://gate:9081/x", false},
		{"the host of another site", "http://127.0.0.1:9081 {\n webhook_gate_callback\n}", "http://gate:9081", true},
		{"a path that it takes", ":9081 {\n webhook_gate_callback /confirm*\n}", "http://gate:9081/confirm", false},
		{"a path that it does not take", ":9081 {\n webhook_gate_callback /confirm*\n}", "http://gate:9081", true},
		{"inside handle", ":9081 {\n handle /c {\n webhook_gate_callback\n }\n}", "http://gate:9081/c", false},
		{"behind the other handle", ":9081 {\n handle /c* {\n respond no\n }\n handle {\n webhook_gate_callback\n }\n}", "http://gate:9081/c", true},
		{"behind a path that is stripped", ":9081 {\n handle_path /c/* {\n webhook_gate_callback /confirm\n }\n}", "http://gate:9081/c/confirm", false},
		{"a named route that invokes itself", "&(loop) {\n invoke loop\n}\n:9081 {\n invoke loop\n}\n:9083 {\n webhook_gate_callback\n}", "http://gate:9081/", true},
		{"a port that is not this config's", ":9081 {\n webhook_gate_callback\n}", "http://gate:9082", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := provisioned(t, c.sites)
			mod, err := app.ctx.App("http")
			if err != nil {
				t.Fatal(err)
			}
			at, err := url.Parse(c.at)
			if err != nil {
				t.Fatal(err)
			}
			if got := misrouted(mod.(*caddyhttp.App), *at); got != c.misrouted {
				t.Errorf("misrouted: %v", got)
			}
		})
	}
}
