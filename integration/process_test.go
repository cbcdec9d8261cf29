package integration

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/einlass/einlass/integration/internal/app"
)

func TestASecondProcessOnTheSameFileIsRefusedAndNamesIt(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "")
	first := g.config
	g.addr, g.admin = "127.0.0.1:0", "off"
	g.config = filepath.Join(g.dir, "second")
	g.write(behind.Addr, "")
	code, out := g.command("run", "--config", g.config, "--adapter", "caddyfile")
	if code == 0 || !strings.Contains(out, g.store) || !strings.Contains(out, "another process has this file open") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if code, out := g.command("validate", "--config", first, "--adapter", "caddyfile"); code != 0 {
		t.Fatalf("validate beside a running gate: exit %d\n%s", code, out)
	}
}

func TestReloadsUnderLoadLoseAndDoubleNothing(t *testing.T) {
	var mu sync.Mutex
	effects := map[string]int{}
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		effects[r.Header.Get("Webhook-Gate-Event")]++
		mu.Unlock()
		app.Text(http.StatusOK, r.Header.Get("Webhook-Gate-Event"))(w, r)
	})
	g := startGate(t, behind.Addr, "")
	stop := make(chan struct{})
	var acknowledged atomic.Int64
	senders := steadily(stop, func(id string) bool {
		if !g.deliver(push(id, fmt.Sprintf(`{"id":%q}`, id))) {
			return false
		}
		acknowledged.Add(1)
		return true
	})
	for range 20 {
		g.reload()
	}
	close(stop)
	senders.Wait()
	if t.Failed() {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if int64(len(effects)) != acknowledged.Load() {
		t.Errorf("%d events acknowledged, %d reached the app", acknowledged.Load(), len(effects))
	}
	for id, n := range effects {
		if n != 1 {
			t.Errorf("event %s reached the app %d times", id, n)
		}
	}
	t.Logf("%d events through 20 reloads", acknowledged.Load())
}

// deliver sends an event as a sender does that tries again when its connection breaks (a reload may drop one
// before it is read) until it has a 200 with the event's own answer.
func (g *gate) deliver(e event) bool {
	const tries = 20
	var last any
	for range tries {
		a, err := do(g.request(g.t.Context(), e))
		if err == nil && a.Status == http.StatusOK {
			if a.Body != e.id {
				g.t.Errorf("event %s got the answer of %q", e.id, a.Body)
			}
			return true
		}
		last = fmt.Sprint(a.Status, a.Code, err)
	}
	g.t.Errorf("event %s: not acknowledged in %d tries: %v", e.id, tries, last)
	return false
}
