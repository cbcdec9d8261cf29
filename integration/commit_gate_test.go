package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
)

// committing is a gate process with a place where its app confirms.
type committing struct {
	*gate
	callbacks string
	global    string // further global options
}

// startCommitting starts one. In words, CALLBACKS is where the app confirms.
func startCommitting(t *testing.T, global, upstream, words string) *committing {
	t.Helper()
	dir := t.TempDir()
	c := &committing{callbacks: proc.FreeAddr(t), global: global, gate: &gate{
		t: t, dir: dir, store: filepath.Join(dir, "receipts.db"), config: filepath.Join(dir, "Caddyfile"), addr: proc.FreeAddr(t), admin: proc.FreeAddr(t),
	}}
	c.write(upstream, words)
	c.start()
	return c
}

func (c *committing) write(upstream, words string) {
	c.t.Helper()
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	debug
	%s
	webhook_gate {
		store bolt %s
	}
}
http://%s {
	bind 127.0.0.1
	webhook_gate /hook github %q {
		%s
	}
	reverse_proxy %s
}
http://%s {
	bind 127.0.0.1
	webhook_gate_callback
}
`, c.admin, c.global, c.store, c.addr, secret, strings.ReplaceAll(words, "CALLBACKS", "http://"+c.callbacks), upstream, c.callbacks)
	if err := os.WriteFile(c.config, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// confirmAt says something at the URL that the app was given.
func (c *committing) confirmAt(attempt http.Header, change func(*http.Request), text string) answer {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, attempt.Get("Webhook-Gate-Confirm"), strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Webhook-Gate-Token", attempt.Get("Webhook-Gate-Token"))
	if change != nil {
		change(req)
	}
	a, err := do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// silent holds that none of our log lines has the token. Caddy's own have it where they are told to log requests.
func (c *committing) silent(attempt http.Header) {
	c.t.Helper()
	token := attempt.Get("Webhook-Gate-Token")
	if len(token) != 48 {
		c.t.Fatalf("token %q", token)
	}
	ours := 0
	for line := range strings.Lines(c.Output()) {
		var entry struct{ Logger string }
		_ = json.Unmarshal([]byte(line), &entry)
		if !strings.Contains(entry.Logger, "webhook_gate") {
			continue
		}
		if ours++; strings.Contains(line, token) {
			c.t.Errorf("the token is in %s", line)
		}
	}
	if ours == 0 {
		c.t.Error("no log line of ours")
	}
}

// takes is an app that has the event (202) and shows what it got.
func takes(attempts chan<- http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		attempts <- r.Header.Clone()
		app.Text(http.StatusAccepted, "taken")(w, r)
	}
}

const committedDone = `{"outcome":"committed","status":201,"content_type":"text/plain","body":"done"}`

func wantCommitted(t *testing.T, what string, a answer, duplicate bool) {
	t.Helper()
	want(t, what, a, http.StatusCreated, "", duplicate)
	if a.Body != "done" || a.Header.Get("Content-Type") != "text/plain" {
		t.Fatalf("%s: %q of type %q", what, a.Body, a.Header.Get("Content-Type"))
	}
}
