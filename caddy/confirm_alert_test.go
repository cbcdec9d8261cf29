package caddy

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/einlass/einlass/dedup"
)

func TestTheConfirmURLIsToldInCallbackModeOnly(t *testing.T) {
	t.Parallel()
	for confirm, want := range map[string]string{
		"":                                 "",
		confirmResponse:                    "",
		"callback http://127.0.0.1:9081":   "http://127.0.0.1:9081/?event=one&source=github",
		"callback https://gate.test/a%2Fb": "https://gate.test/a%2Fb?event=one&source=github",
	} {
		g := newTestGate(t, Handler{Confirm: confirm})
		g.prepare = func(r *http.Request) {
			r.Header.Set(headerConfirm, "http://evil.test/")
			r.Header["Webhook_gate_confirm"] = []string{"http://evil.test/"}
		}
		var got http.Header
		g.deliver(func(w http.ResponseWriter, r *http.Request) error {
			got = r.Header.Clone()
			return status(200, "committed", "")(w, r)
		}, "one", "{}")
		if got.Get(headerConfirm) != want || got["Webhook_gate_confirm"] != nil {
			t.Errorf("%q: got %v", confirm, got)
		}
	}
}

func TestASecondEffectIsToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(t, Handler{AnswerWithin: caddy.Duration(time.Second)})
		var (
			mu   sync.Mutex
			told []dedup.NoticeKind
		)
		held, err := g.app.hold()
		if err != nil {
			t.Fatal(err)
		}
		held.gate = dedup.NewGate(g.store, dedup.GateOptions{Notify: func(n dedup.Notice) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, n.Kind)
		}})
		g.app.release()
		tokens := make(chan string, 2)
		first := func(_ http.ResponseWriter, r *http.Request) error {
			tokens <- r.Header.Get(headerToken)
			panic(http.ErrAbortHandler)
		}
		wantCode(t, "first", g.deliver(first, "one", "{}"), 503, codeInDoubt)
		time.Sleep(2 * time.Minute)
		second := g.sending(working(tokens, 500*time.Millisecond, status(200, "", "something else")), "one", "{}")
		synctest.Wait()
		wantCode(t, "callback of the first", g.confirm("one", <-tokens, saidDone), 200, "")
		wantDone(t, "second", <-second, true)
		g.drain()
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 1 || told[0] != dedup.NoticeReceiptDiffers {
			t.Errorf("told %v", told)
		}
	})
}

func TestGatesOfOneSourceAgreeAlikeWithTheirApps(t *testing.T) {
	for _, c := range []struct{ name, a, b, refused string }{
		{"the same in other words", "outcome http://127.0.0.1:1/", "outcome http://127.0.0.1:1/\n in_doubt ask", ""},
		{"another outcome", "outcome http://127.0.0.1:1/", "outcome http://127.0.0.1:2/", "differ in `confirm`"},
		{"a callback and none", "confirm callback http://127.0.0.1:1", "", "differ in `confirm`"},
		{"another max_receipt", "max_receipt 1MiB", "max_receipt off", "differ in `confirm`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := provision(t, site("webhook_gate /a github s3cret {\n source main\n "+c.a+"\n }\n webhook_gate /b github s3cret {\n source main\n "+c.b+"\n }\n webhook_gate_callback /c\n reverse_proxy 127.0.0.1:1"))
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}
