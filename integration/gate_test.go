package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/proc"
	"github.com/einlass/einlass/verifier"
)

const secret = "It's a secret"

// gate is a running gate process in front of an app, with one source: github at /hook.
type gate struct {
	*proc.Process
	t      testing.TB
	dir    string
	store  string
	config string
	addr   string
	admin  string
}

// startGate starts a gate whose source has the given words in its block.
func startGate(t testing.TB, upstream, words string) *gate {
	t.Helper()
	return startGateOn(t, filepath.Join(t.TempDir(), "receipts.db"), upstream, words)
}

// startGateOn is startGate with a place for the store.
func startGateOn(t testing.TB, store, upstream, words string) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir(), store: store, addr: proc.FreeAddr(t), admin: proc.FreeAddr(t)}
	g.config = filepath.Join(g.dir, "Caddyfile")
	g.write(upstream, words)
	g.start()
	return g
}

func (g *gate) write(upstream, words string) {
	g.t.Helper()
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	webhook_gate {
		store bolt %s
	}
}
http://%s {
	bind 127.0.0.1
	webhook_gate /hook github "%s" {
		%s
	}
	reverse_proxy %s
}
`, g.admin, g.store, g.addr, secret, words, upstream)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gate) start() {
	g.t.Helper()
	g.Process = proc.Start(g.t, g.dir, exe, "run", "--config", g.config, "--adapter", "caddyfile")
	g.WaitLine("serving initial configuration")
}

// command runs another process of the same binary and gives its exit code and output.
func (g *gate) command(args ...string) (int, string) {
	g.t.Helper()
	p := proc.Start(g.t, g.dir, exe, args...)
	return p.WaitExit(), p.Output()
}

func (g *gate) reload() {
	g.t.Helper()
	if code, out := g.command("reload", "--config", g.config, "--adapter", "caddyfile", "--address", g.admin, "--force"); code != 0 {
		g.t.Fatalf("reload: exit %d\n%s", code, out)
	}
}

// answer is what a sender got.
type answer struct {
	Status    int
	Body      string
	Duplicate bool
	Code      string
	Header    http.Header
}

// event is the sender's side of one event.
type event struct{ id, typ, body string }

func push(id, body string) event { return event{id: id, typ: "push", body: body} }

// client takes a connection of its own for each delivery, for a reload or a restart closes idle ones at any
// time, and follows no redirect.
var client = &http.Client{
	Timeout:       proc.Patience,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// request signs an event as GitHub would.
func (g *gate) request(ctx context.Context, e event) *http.Request {
	g.t.Helper()
	return signed(g.t, ctx, "http://"+g.addr+"/hook", e)
}

func signed(t testing.TB, ctx context.Context, url string, e event) *http.Request {
	t.Helper()
	preset, _ := verifier.LookupPreset("github")
	key, err := verifier.NewSecret(secret, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := preset.New(verifier.Options{Secrets: []verifier.Secret{key}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Delivery", e.id)
	req.Header.Set("X-GitHub-Event", e.typ)
	signature, err := scheme.(verifier.Signer).Sign(verifier.Request{Method: req.Method, URL: url, Header: req.Header, Now: time.Now()}, []byte(e.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range signature {
		req.Header[name] = values
	}
	return req
}

// send sends an event and reads the whole answer.
func (g *gate) send(e event) answer {
	g.t.Helper()
	a, err := do(g.request(context.Background(), e))
	if err != nil {
		g.t.Fatalf("event %s: %v", e.id, err)
	}
	return a
}

func do(req *http.Request) (answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: resp.StatusCode, Body: string(body), Header: resp.Header, Duplicate: resp.Header.Get("Webhook-Gate-Receipt") == "duplicate"}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		var problem struct{ Code string }
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&problem); err != nil {
			return a, err
		}
		a.Code = problem.Code
	}
	return a, nil
}

// steadily runs 8 senders, each of which sends its n-th event until stop is closed or send says that it is over.
func steadily(stop <-chan struct{}, send func(id string) bool) *sync.WaitGroup {
	var senders sync.WaitGroup
	for s := range 8 {
		senders.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if !send(fmt.Sprintf("%d-%d", s, n)) {
					return
				}
			}
		})
	}
	return &senders
}

// want compares what matters of an answer; code "" means the app's own.
func want(t testing.TB, what string, got answer, status int, code string, duplicate bool) {
	t.Helper()
	if got.Status != status || got.Code != code || got.Duplicate != duplicate {
		t.Fatalf("%s: got %d %q duplicate=%v, want %d %q duplicate=%v; body %q", what, got.Status, got.Code, got.Duplicate, status, code, duplicate, got.Body)
	}
}
