package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
	"github.com/einlass/einlass/verifier"
)

func TestSlacksHandshakeIsAnsweredByTheGateOnlyWhenSigned(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	dir, addr := t.TempDir(), proc.FreeAddr(t)
	config := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n\tpersist_config off\n\twebhook_gate {\n\t\tstore bolt %s\n\t}\n}\nhttp://%s {\n\tbind 127.0.0.1\n\twebhook_gate slack slack-secret\n\treverse_proxy %s\n}\n",
		filepath.Join(dir, "receipts.db"), addr, behind.Addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	proc.Start(t, dir, exe, "run", "--config", config, "--adapter", "caddyfile").WaitLine("serving initial configuration")

	preset, _ := verifier.LookupPreset("slack")
	key, err := verifier.NewSecret("slack-secret", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := preset.New(verifier.Options{Secrets: []verifier.Secret{key}})
	if err != nil {
		t.Fatal(err)
	}
	challenge := `{"type":"url_verification","challenge":"chal-made-up-123"}`
	for _, c := range []struct {
		name, body string
		signed     bool
		status     int
		answer     string
	}{
		{"signed", challenge, true, http.StatusOK, "chal-made-up-123"},
		{"unsigned", challenge, false, http.StatusUnauthorized, ""},
		{"an event is no handshake", `{"type":"event_callback","event_id":"Ev1","challenge":"x"}`, true, http.StatusOK, "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+addr+"/", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			signature, err := scheme.(verifier.Signer).Sign(verifier.Request{Method: req.Method, Header: req.Header, Now: time.Now()}, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range signature {
				if c.signed || !strings.Contains(name, "Signature") {
					req.Header[name] = values
				}
			}
			a, err := do(req)
			if err != nil {
				t.Fatal(err)
			}
			if a.Status != c.status || (c.answer != "" && a.Body != c.answer) || (c.answer == "" && strings.Contains(a.Body, "chal-")) {
				t.Fatalf("got %d %q", a.Status, a.Body)
			}
		})
	}
	if n := len(behind.Requests()); n != 1 {
		t.Fatalf("the app was reached %d times, want 1", n)
	}
}
