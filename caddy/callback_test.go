package caddy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/einlass/einlass/dedup"
)

func TestAConfirmationIsAnsweredByWhatStands(t *testing.T) {
	t.Parallel()
	const said = `{"outcome":"committed","status":201,"content_type":"text/plain","body":"done"}`
	for _, c := range []struct {
		name        string
		first, then string
		status      int
		code        code
		state       dedup.State
	}{
		{"the same again", said, said, 200, "", dedup.StateCommitted},
		{"the same in other words", said, ` {"body":"d\u006fne", "content_type":"text/plain", "status":201, "outcome":"committed", "mine":[1]} `, 200, "", dedup.StateCommitted},
		{"another status", said, `{"outcome":"committed","status":200,"content_type":"text/plain","body":"done"}`, 409, codeReceiptDiffers, dedup.StateCommitted},
		{"another body", said, `{"outcome":"committed","status":201,"content_type":"text/plain","body":"done!"}`, 409, codeReceiptDiffers, dedup.StateCommitted},
		{"another type", said, `{"outcome":"committed","status":201,"content_type":"text/html","body":"done"}`, 409, codeReceiptDiffers, dedup.StateCommitted},
		{"rejected after committed", said, `{"outcome":"rejected","status":201,"content_type":"text/plain","body":"done"}`, 409, codeReceiptDiffers, dedup.StateCommitted},
		{"aborted after committed", said, `{"outcome":"aborted"}`, 409, codeReceiptDiffers, dedup.StateCommitted},
		{"rejected", `{"outcome":"rejected","status":422}`, `{"outcome":"rejected","status":422}`, 200, "", dedup.StateRejected},
		{"committed after rejected", `{"outcome":"rejected"}`, `{"outcome":"committed"}`, 409, codeReceiptDiffers, dedup.StateRejected},
		{"aborted twice", `{"outcome":"aborted"}`, `{"outcome":"aborted"}`, 200, "", dedup.StateOpen},
		{"committed after aborted", `{"outcome":"aborted"}`, said, 200, "", dedup.StateCommitted},
		{"no status is 200", `{"outcome":"committed"}`, `{"outcome":"committed","status":200,"content_type":"","body":""}`, 200, "", dedup.StateCommitted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := callbackGate(t, Handler{})
			token := g.taken("one", "{}")
			wantCode(t, "first", g.confirm("one", token, c.first), http.StatusOK, "")
			before := g.stands("one")
			w := g.confirm("one", token, c.then)
			wantCode(t, "then", w, c.status, c.code)
			after := g.stands("one")
			if after.State != c.state {
				t.Fatalf("the event is %s, want %s", after.State, c.state)
			}
			if before.State.Final() && !after.Answer.Equal(*before.Answer) {
				t.Fatalf("the receipt has changed from %v to %v", before.Answer, after.Answer)
			}
			if c.status == 200 && (w.Header().Get("Content-Type") != "application/json" || w.Body.String() != `{"state":"`+c.state.String()+`"}`) {
				t.Errorf("got %q %s", w.Header().Get("Content-Type"), w.Body)
			}
		})
	}
}

// untouched is a body that nobody may read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read before it was known who confirms")
	return 0, io.EOF
}

func (untouched) Close() error { return nil }

func TestOnlyWhoHasTheTokenConfirms(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{})
	token, other := g.taken("one", "{}"), g.taken("two", `{"b":2}`)
	for name, change := range map[string]func(*http.Request){
		"no token":                 func(r *http.Request) { r.Header.Del(headerToken) },
		"an empty token":           func(r *http.Request) { r.Header.Set(headerToken, "") },
		"the token twice":          func(r *http.Request) { r.Header.Add(headerToken, token) },
		"two tokens":               func(r *http.Request) { r.Header.Add(headerToken, other) },
		"a wrong token":            func(r *http.Request) { r.Header.Set(headerToken, strings.Repeat("0", len(token))) },
		"half of the token":        func(r *http.Request) { r.Header.Set(headerToken, token[:len(token)/2]) },
		"the token in capitals":    func(r *http.Request) { r.Header.Set(headerToken, strings.ToUpper(token)) },
		"another event's token":    func(r *http.Request) { r.Header.Set(headerToken, other) },
		"the token in the URL":     func(r *http.Request) { r.Header.Del(headerToken); r.URL.RawQuery += "&token=" + token },
		"an unknown event":         func(r *http.Request) { r.URL.RawQuery = "source=github&event=three" },
		"an unknown source":        func(r *http.Request) { r.URL.RawQuery = "source=gitlab&event=one" },
		"no event":                 func(r *http.Request) { r.URL.RawQuery = "source=github" },
		"no source":                func(r *http.Request) { r.URL.RawQuery = "event=one" },
		"an empty event":           func(r *http.Request) { r.URL.RawQuery = "source=github&event=" },
		"no query":                 func(r *http.Request) { r.URL.RawQuery = "" },
		"two events":               func(r *http.Request) { r.URL.RawQuery = "source=github&event=one&event=two" },
		"two sources":              func(r *http.Request) { r.URL.RawQuery = "source=github&source=gitlab&event=one" },
		"a query that is none":     func(r *http.Request) { r.URL.RawQuery = "source=github&event=one&%zz" },
		"a query with a semicolon": func(r *http.Request) { r.URL.RawQuery = "source=github;event=one" },
		"a cut escape":             func(r *http.Request) { r.URL.RawQuery = "source=github&event=one%0" },
		"a zero byte":              func(r *http.Request) { r.URL.RawQuery = "source=github&event=one%00" },
		"a body of bad JSON too":   func(r *http.Request) { r.Header.Set(headerToken, other) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := g.confirmation("one", token, "")
			r.Body, r.ContentLength = untouched{t}, 20
			change(r)
			w := g.said(r)
			wantCode(t, "got", w, http.StatusNotFound, codeUnknownEvent)
			if w.Header().Get("Connection") != "close" {
				t.Error("a connection whose body was not read is kept")
			}
			if strings.Contains(w.Body.String(), "one") || strings.Contains(w.Body.String(), token) {
				t.Errorf("the answer says too much: %s", w.Body)
			}
		})
	}
	t.Cleanup(func() {
		wantCode(t, "the right token", g.confirm("one", token, `{"outcome":"committed"}`), http.StatusOK, "")
		if s := g.stands("two").State; s != dedup.StateReserved {
			t.Errorf("the other event is %s", s)
		}
	})
}

func TestWhatIsNoConfirmationMovesNothing(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{MaxReceipt: 16})
	token := g.taken("one", "{}")
	for _, c := range []struct {
		name, body string
		declared   int64 // 0: as it is; -1: chunked
		status     int
		code       code
	}{
		{"nothing", "", 0, 400, codeInvalidJSON},
		{"text", "committed", 0, 400, codeInvalidJSON},
		{"cut JSON", `{"outcome":"committed"`, 0, 400, codeInvalidJSON},
		{"pending", `{"outcome":"pending"}`, 0, 400, codeInvalidJSON},
		{"a body one byte above max_receipt", `{"outcome":"committed","body":"12345678901234567"}`, 0, 413, codeBodySize},
		{"one of bytes that are more than letters", `{"outcome":"committed","body":"äöüäöüäöü"}`, 0, 413, codeBodySize},
		{"an aborted one, too", `{"outcome":"aborted","body":"12345678901234567"}`, 0, 413, codeBodySize},
		{"huge JSON", `{"outcome":"committed","x":"` + strings.Repeat("y", 8<<10) + `"}`, 0, 413, codeBodySize},
		{"huge JSON, chunked", `{"outcome":"committed","x":"` + strings.Repeat("y", 8<<10) + `"}`, -1, 413, codeBodySize},
		{"a huge length of a small body", `{"outcome":"committed"}`, 1 << 40, 413, codeBodySize},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.confirmation("one", token, c.body)
			if c.declared != 0 {
				r.ContentLength = c.declared
			}
			wantCode(t, "got", g.said(r), c.status, c.code)
			if s := g.stands("one").State; s != dedup.StateReserved {
				t.Fatalf("the event is %s", s)
			}
		})
	}
	t.Run("a body of just max_receipt, each byte escaped, chunked", func(t *testing.T) {
		r := g.confirmation("one", token, `{"outcome":"committed","body":"`+strings.Repeat(`\u0031`, 16)+`"}`)
		r.ContentLength = -1
		wantCode(t, "got", g.said(r), http.StatusOK, "")
		if body := g.stands("one").Answer.Body; string(body) != strings.Repeat("1", 16) {
			t.Fatalf("stored %q", body)
		}
	})
}

func TestAConfirmationIsAPOST(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{})
	token := g.taken("one", "{}")
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "post"} {
		r := g.confirmation("one", token, `{"outcome":"committed"}`)
		r.Method = method
		w := g.said(r)
		wantCode(t, method, w, http.StatusMethodNotAllowed, codeMethod)
		if allow := w.Header().Get("Allow"); allow != "POST" {
			t.Errorf("%s: Allow %q", method, allow)
		}
	}
	if s := g.stands("one").State; s != dedup.StateReserved {
		t.Errorf("the event is %s", s)
	}
}

func TestEveryEventIDConfirmsAtTheURLThatItsAppWasGiven(t *testing.T) {
	t.Parallel()
	for _, event := range []string{
		"a&b", "a?b", "a#b", "100%", "%41", "a/b", "../x", "a b", "a+b", "Zürich", "日本", "a;b", "a=b", `"quoted"`, "a\\b", "<x>", "'", strings.Repeat("é", 256),
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			g := callbackGate(t, Handler{Source: "own & source/1"})
			header := g.accepted(event, "{}")
			at := header.Get(headerConfirm)
			if !strings.HasPrefix(at, testCallback+"?") || strings.Contains(at, header.Get(headerToken)) {
				t.Fatalf("%s: %q", headerConfirm, at)
			}
			r := httptest.NewRequest(http.MethodPost, at, strings.NewReader(`{"outcome":"committed"}`))
			r.Header.Set(headerToken, header.Get(headerToken))
			wantCode(t, at, g.said(r), http.StatusOK, "")
			if s := g.stands(event).State; s != dedup.StateCommitted {
				t.Fatalf("the event is %s", s)
			}
		})
	}
}

func TestACallbackTakesNoWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"webhook_gate_callback":                       "",
		"webhook_gate_callback now":                   "takes only a matcher",
		"webhook_gate_callback {\n max_receipt 1B\n}": "max_receipt",
	} {
		err := new(Callback).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestACallbackHasTheLimitsOfTheEventsSource(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{MaxReceipt: -1, ReceiptHeaders: []string{"X-Own"}})
	token := g.taken("one", "{}")
	wantCode(t, "a body where none is kept", g.confirm("one", token, `{"outcome":"committed","body":"1"}`), http.StatusRequestEntityTooLarge, codeBodySize)
	wantCode(t, "none", g.confirm("one", token, `{"outcome":"committed","content_type":"text/plain"}`), http.StatusOK, "")
	if a := g.stands("one").Answer; len(a.Header) != 0 || len(a.Body) != 0 || a.BodyDropped {
		t.Errorf("stored %+v", a)
	}
	wantCode(t, "said again", g.confirm("one", token, `{"outcome":"committed","content_type":"text/plain"}`), http.StatusOK, "")

	// A source that this config has no gate for keeps what is kept by default.
	g.app.sources = map[string]sourceUse{}
	g.set.maxReceipt, g.set.receiptHeaders = 0, nil
	token = g.taken("two", `{"b":2}`)
	wantCode(t, "a body", g.confirm("two", token, `{"outcome":"committed","body":"1"}`), http.StatusOK, "")
}
