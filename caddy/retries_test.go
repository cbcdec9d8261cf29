package caddy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// provisioned gives the gate's app of a Caddyfile, provisioned and not started. Caddy provisions one config at a time, so
// what calls this is not parallel.
func provisioned(t *testing.T, sites string) *App {
	t.Helper()
	app, err := provision(t, sites)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func provision(t *testing.T, sites string) (*App, error) {
	t.Helper()
	text := "{\n\tadmin off\n\tauto_https off\n\twebhook_gate {\n\t\tstore guest\n\t}\n}\n" + sites
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var config caddy.Config
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	ctx, err := caddy.ProvisionContext(&config)
	if err != nil {
		return nil, err
	}
	if _, err := ctx.App("http"); err != nil {
		return nil, err
	}
	return gateApp(ctx)
}

// site is a server with these directives.
func site(directives string) string { return "http://127.0.0.1:0 {\n" + directives + "\n}\n" }

const repeating = `{
	lb_retries 2
	lb_retry_match {
		path /*
	}
}`

func TestAProxyThatRepeatsWhatWasSentIsRefusedBehindAGate(t *testing.T) {
	for _, c := range []struct{ name, sites string }{
		{"the next directive", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 " + repeating)},
		{"the gate's own path", site("webhook_gate /hook github s3cret\n reverse_proxy /hook 127.0.0.1:1 " + repeating)},
		{"a path that holds the gate's", site("webhook_gate /hooks/a github s3cret\n reverse_proxy /hooks/* 127.0.0.1:1 " + repeating)},
		{"a path within the gate's", site("webhook_gate /hooks/* github s3cret\n reverse_proxy /hooks/a 127.0.0.1:1 " + repeating)},
		{"the gate's path in other letters", site("webhook_gate /Hook github s3cret\n reverse_proxy /hOOK 127.0.0.1:1 " + repeating)},
		{"a path with a wildcard in front", site("webhook_gate /hook github s3cret\n reverse_proxy *.php 127.0.0.1:1 " + repeating)},
		{"one of several paths", site("@two path /x /hook\n webhook_gate /hook github s3cret\n reverse_proxy @two 127.0.0.1:1 " + repeating)},
		{"any path by a regular expression", site("@re path_regexp ^/h\n webhook_gate /hook github s3cret\n reverse_proxy @re 127.0.0.1:1 " + repeating)},
		{"a retry of any request", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_try_duration 2s\n lb_retry_match {\n path /hook\n }\n}")},
		{"a retry by method POST", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_retries 1\n lb_retry_match {\n method GET POST\n }\n}")},
		{"a second retry match", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_retries 1\n lb_retry_match {\n method GET\n }\n lb_retry_match {\n path /*\n }\n}")},
		{"a retry by the app's status", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_retries 1\n lb_retry_match `{rp.status_code} == 503`\n}")},
		{"in a handle behind", site("webhook_gate /hook github s3cret\n handle /hook {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"both in one handle", site("handle /hook {\n webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n handle {\n respond ok\n}")},
		{"both in one handle_path", site("handle_path /a/* {\n webhook_gate /hook github s3cret\n reverse_proxy /hook 127.0.0.1:1 " + repeating + "\n}")},
		{"a gate of any path in a handle_path", site("handle_path /a/* {\n webhook_gate github s3cret\n reverse_proxy /hook 127.0.0.1:1 " + repeating + "\n}")},
		{"a retry of the path that handle_path leaves", site("webhook_gate github s3cret\n handle_path /a/* {\n reverse_proxy 127.0.0.1:1 {\n lb_retries 1\n lb_retry_match {\n path /hook\n }\n }\n}")},
		{"behind a prefix that is stripped", site("route {\n webhook_gate /a/hook github s3cret\n uri strip_prefix /a\n handle /hook {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n}")},
		{"in a handle_path behind a gate by the path before", site("webhook_gate /a/hook github s3cret\n handle_path /a/* {\n reverse_proxy /hook 127.0.0.1:1 " + repeating + "\n}")},
		{"behind a rewrite", site("route {\n webhook_gate /hook github s3cret\n rewrite /hook /app\n reverse_proxy /app 127.0.0.1:1 " + repeating + "\n}")},
		{"a retry by the path that the proxy rewrites to", site("webhook_gate /hook github s3cret\n reverse_proxy /hook 127.0.0.1:1 {\n rewrite /app\n lb_retries 1\n lb_retry_match {\n path /app\n expression `{rp.status_code} == 503`\n }\n}")},
		{"nested handles", site("handle /a/* {\n webhook_gate /a/hook github s3cret\n handle /a/hook {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n}")},
		{"the handle that catches the rest", site("webhook_gate /hook github s3cret\n handle /other {\n respond ok\n}\n handle {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"in a route", site("route {\n webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"a gate in a route before", site("route {\n webhook_gate /hook github s3cret\n}\n reverse_proxy 127.0.0.1:1 " + repeating)},
		{"a named route", "&(app) {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n" + site("webhook_gate github s3cret\n invoke app")},
		{"a gate in a named route", "&(gate) {\n webhook_gate github s3cret\n}\n" + site("route {\n invoke gate\n reverse_proxy 127.0.0.1:1 "+repeating+"\n}")},
		{"in handle_response", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n handle_response {\n reverse_proxy 127.0.0.1:2 " + repeating + "\n}\n}")},
		{"the second of two servers", site("respond ok") + "http://127.0.0.1:1 {\n webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := provisioned(t, c.sites).checkHandlers()
			if err == nil {
				t.Fatal("let in")
			}
			for _, part := range []string{"server srv", "reverse_proxy", "lb_retry_match", "`method GET`"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message lacks %q: %v", part, err)
				}
			}
		})
	}
}

func TestAProxyMayRepeatWhatIsNoDelivery(t *testing.T) {
	for _, c := range []struct{ name, sites string }{
		{"failed dials only", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 127.0.0.1:2 {\n lb_retries 2\n lb_try_duration 5s\n}")},
		{"a match without retries", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_retry_match {\n path /*\n }\n}")},
		{"method GET", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_retries 2\n lb_retry_match {\n method GET HEAD\n }\n}")},
		{"method GET of a path", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n lb_retries 2\n lb_retry_match {\n method GET\n path /*\n }\n}")},
		{"a retry of another path", site("webhook_gate /hook github s3cret\n reverse_proxy /hook 127.0.0.1:1 {\n lb_retries 2\n lb_retry_match {\n path /read/*\n }\n}")},
		{"another path", site("webhook_gate /hook github s3cret\n reverse_proxy /api/* 127.0.0.1:1 " + repeating + "\n reverse_proxy 127.0.0.1:1")},
		{"a longer path than the gate's", site("webhook_gate /hook github s3cret\n reverse_proxy /hook/more 127.0.0.1:1 " + repeating)},
		{"another handle", site("handle /hook {\n webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1\n}\n handle {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"another handle_path", site("handle_path /a/* {\n webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1\n}\n handle_path /b/* {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"a handle_path of another path than the gate's", site("webhook_gate /hook github s3cret\n handle_path /b/* {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"a rewrite of another path", site("route {\n webhook_gate /hook github s3cret\n rewrite /b /c\n reverse_proxy /c 127.0.0.1:1 " + repeating + "\n}")},
		{"a handle behind one that rewrites", site("webhook_gate /hook github s3cret\n handle /hook {\n rewrite /app\n reverse_proxy 127.0.0.1:1\n}\n handle /api/* {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}")},
		{"a rewrite of the method only", site("route {\n webhook_gate /hook github s3cret\n method /hook POST\n reverse_proxy /api 127.0.0.1:1 " + repeating + "\n}")},
		{"before the gate", site("route {\n reverse_proxy /x 127.0.0.1:1 " + repeating + "\n webhook_gate github s3cret\n}")},
		{"another site", "http://a.test:8000 {\n webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1\n}\nhttp://b.test:8000 {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n"},
		{"another server", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1") + "http://127.0.0.1:1 {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n"},
		{"a named route that nobody invokes behind the gate", "&(app) {\n reverse_proxy 127.0.0.1:1 " + repeating + "\n}\n" + site("webhook_gate /hook github s3cret\n handle /api {\n invoke app\n}")},
		{"a named route that invokes itself", "&(loop) {\n invoke loop\n}\n" + site("webhook_gate github s3cret\n invoke loop")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := provisioned(t, c.sites).checkHandlers(); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestACallbackNeedsAPlaceInTheSameConfig(t *testing.T) {
	const gate = "webhook_gate /a github s3cret {\n confirm callback http://127.0.0.1:9081\n}\n reverse_proxy 127.0.0.1:1"
	for name, c := range map[string]struct {
		sites string
		right bool
	}{
		"none":                            {site(gate), false},
		"none, and a gate without":        {site(gate + "\n webhook_gate /b stripe s3cret"), false},
		"on another listener":             {site(gate) + "http://127.0.0.1:9081 {\n webhook_gate_callback\n}\n", true},
		"on the same one":                 {site(gate + "\n webhook_gate_callback /confirm"), true},
		"in a handle":                     {site(gate + "\n handle /confirm {\n webhook_gate_callback\n}"), true},
		"in a named route":                {"&(confirm) {\n webhook_gate_callback\n}\n" + site(gate+"\n invoke confirm"), true},
		"a place that nobody confirms at": {site("webhook_gate_callback"), true},
	} {
		err := provisioned(t, c.sites).checkHandlers()
		if (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), `source "github"`) || !strings.Contains(err.Error(), "webhook_gate_callback")) {
			t.Errorf("%s: the message is %v", name, err)
		}
	}
}

func TestPathPatternsOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b paths
		want bool
	}{
		{nil, nil, true},
		{nil, paths{"/a"}, true},
		{paths{"/a"}, nil, true},
		{paths{"/a"}, paths{"/a"}, true},
		{paths{"/a"}, paths{"/A"}, true},
		{paths{"/a"}, paths{"/b"}, false},
		{paths{"/a"}, paths{"/a/"}, false},
		{paths{"/a*"}, paths{"/abc"}, true},
		{paths{"/a/*"}, paths{"/a"}, false},
		{paths{"/a/*"}, paths{"/ab/*"}, false},
		{paths{"/a/*"}, paths{"/a/b/*"}, true},
		{paths{"*.php"}, paths{"/a"}, true},
		{paths{"/*/x"}, paths{"/a/x"}, true},
		{paths{"/%2fa"}, paths{"/b"}, true}, // Caddy compares these escaped
		{paths{"/{http.vars.p}"}, paths{"/b"}, true},
		{paths{"/b", "/c"}, paths{"/a", "/c"}, true},
		{paths{"/b", "/c"}, paths{"/a", "/d"}, false},
		{paths{}, paths{"/a"}, false},
		{paths{}, nil, false}, // nowhere
	} {
		if got := overlap(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: got %v", c.a, c.b, got)
		}
		if got := overlap(c.b, c.a); got != c.want {
			t.Errorf("%q and %q: got %v", c.b, c.a, got)
		}
	}
}

func TestAProxyThatSendsAnotherMethodMayNotRetryBehindAGate(t *testing.T) {
	for _, c := range []struct{ name, sites string }{
		{"a GET made of it by the proxy", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n method GET\n lb_retries 2\n}")},
		{"a GET made of it, and repeated", site("webhook_gate github s3cret\n reverse_proxy 127.0.0.1:1 {\n method GET\n lb_retries 2\n lb_retry_match {\n method GET\n }\n}")},
		{"a GET made of it behind the gate", site("route {\n webhook_gate github s3cret\n method GET\n reverse_proxy 127.0.0.1:1 {\n lb_try_duration 2s\n }\n}")},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := provisioned(t, c.sites).checkHandlers()
			if err == nil || !strings.Contains(err.Error(), "another method than POST") {
				t.Errorf("got %v", err)
			}
		})
	}
}
