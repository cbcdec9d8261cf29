package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
)

func TestTheCallbackOverItsOwnListener(t *testing.T) {
	attempts := make(chan http.Header, 8)
	behind := app.Start(t, takes(attempts))
	c := startCommitting(t, "", behind.Addr, "confirm callback CALLBACKS/confirm\n max_receipt 1KiB\n answer_within 30s")
	e := push("a/b?c=d&e#f%41 Zürich", `{"a":1}`)
	var sender sync.WaitGroup
	var got answer
	sender.Go(func() { got = c.send(e) })
	attempt := <-attempts
	if at := attempt.Get("Webhook-Gate-Confirm"); !strings.HasPrefix(at, "http://"+c.callbacks+"/confirm?") || strings.Contains(at, attempt.Get("Webhook-Gate-Token")) {
		t.Fatalf("Webhook-Gate-Confirm %q", at)
	}
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	chunked := func(r *http.Request) { r.ContentLength, r.GetBody = -1, nil }
	for _, r := range []struct {
		name   string
		change func(*http.Request)
		text   string
		status int
		code   string
	}{
		{"GET", func(r *http.Request) { r.Method = http.MethodGet }, "", 405, "method"},
		{"no token", header("Webhook-Gate-Token"), committedDone, 404, "unknown_event"},
		{"two tokens", header("Webhook-Gate-Token", attempt.Get("Webhook-Gate-Token"), "x"), committedDone, 404, "unknown_event"},
		{"a wrong token", header("Webhook-Gate-Token", strings.Repeat("0", 48)), committedDone, 404, "unknown_event"},
		{"another source", func(r *http.Request) {
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "source=github", "source=x", 1)
		}, committedDone, 404, "unknown_event"},
		{"another event", func(r *http.Request) { r.URL.RawQuery = "source=github&event=x" }, committedDone, 404, "unknown_event"},
		{"no JSON", nil, "committed", 400, "invalid_json"},
		{"a name twice", nil, `{"outcome":"committed","outcome":"aborted"}`, 400, "invalid_json"},
		{"a header in the type", nil, `{"outcome":"committed","content_type":"a\r\nSet-Cookie: b=c"}`, 400, "invalid_json"},
		{"a status that is none", nil, `{"outcome":"committed","status":302}`, 400, "invalid_json"},
		{"a body above max_receipt", nil, `{"outcome":"committed","body":"` + strings.Repeat("x", 1025) + `"}`, 413, "body_size"},
		{"huge", nil, `{"outcome":"committed","body":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "body_size"},
		{"huge, chunked", chunked, `{"outcome":"committed","body":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "body_size"},
	} {
		a := c.confirmAt(attempt, r.change, r.text)
		want(t, r.name, a, r.status, r.code, false)
		if r.status == 405 && a.Header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow %q", r.name, a.Header.Get("Allow"))
		}
	}
	c.heldBack(attempt)
	want(t, "committed", c.confirmAt(attempt, nil, committedDone), http.StatusOK, "", false)
	sender.Wait()
	wantCommitted(t, "the sender", got, false)
	want(t, "the same again, chunked", c.confirmAt(attempt, chunked, committedDone), http.StatusOK, "", false)
	want(t, "something else", c.confirmAt(attempt, nil, `{"outcome":"aborted"}`), http.StatusConflict, "receipt_differs", false)
	wantCommitted(t, "a repeat", c.send(e), true)
	c.WaitLine(`receipt_differs: `)
	if code, out := c.command("validate", "--config", c.config, "--adapter", "caddyfile"); code != 0 {
		t.Errorf("validate beside a running gate: exit %d\n%s", code, out)
	}
	c.silent(attempt)

	c.Kill()
	c.start()
	want(t, "the same after a restart", c.confirmAt(attempt, nil, committedDone), http.StatusOK, "", false)
	want(t, "something else after a restart", c.confirmAt(attempt, nil, `{"outcome":"rejected"}`), http.StatusConflict, "receipt_differs", false)
	wantCommitted(t, "a repeat after a restart", c.send(e), true)
	if n := len(behind.Requests()); n != 1 {
		t.Errorf("the app was reached %d times", n)
	}
}

// heldBack holds that what is decided before the body is answered although the app holds it back.
func (c *committing) heldBack(attempt http.Header) {
	c.t.Helper()
	at, err := url.Parse(attempt.Get("Webhook-Gate-Confirm"))
	if err != nil {
		c.t.Fatal(err)
	}
	right := "Webhook-Gate-Token: " + attempt.Get("Webhook-Gate-Token") + "\r\n"
	for name, r := range map[string]struct{ head, want string }{
		"a wrong token":       {"Webhook-Gate-Token: x\r\nContent-Length: 20\r\n\r\n", "HTTP/1.1 404 "},
		"a wrong one, Expect": {"Webhook-Gate-Token: x\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 404 "},
		"a huge length":       {right + "Content-Length: 99999999999\r\n\r\n", "HTTP/1.1 413 "},
	} {
		conn, err := net.Dial("tcp", c.callbacks)
		if err != nil {
			c.t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(proc.Patience / 2))
		_, _ = io.WriteString(conn, "POST "+at.RequestURI()+" HTTP/1.1\r\nHost: "+c.callbacks+"\r\n"+r.head)
		answer, err := io.ReadAll(conn) // to its end: the connection is closed behind the answer
		_ = conn.Close()
		if err != nil || !strings.HasPrefix(string(answer), r.want) {
			c.t.Errorf("%s: %v %q, want %q", name, err, answer, r.want)
		}
	}
	// One that ends before its length: nothing is stored.
	conn, err := net.Dial("tcp", c.callbacks)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(proc.Patience / 2))
	_, _ = io.WriteString(conn, "POST "+at.RequestURI()+" HTTP/1.1\r\nHost: "+c.callbacks+"\r\n"+right+"Content-Length: 100\r\n\r\n{\"outcome\":\"aborted\"}")
	_ = conn.(*net.TCPConn).CloseWrite()
	if line, _ := bufio.NewReader(conn).ReadString('\n'); line != "" && !strings.HasPrefix(line, "HTTP/1.1 400 ") {
		c.t.Errorf("a cut confirmation: %q", line)
	}
}

func TestALateCallbackOfASlowAppIsFoundByTheNextDelivery(t *testing.T) {
	attempts := make(chan http.Header, 8)
	release := make(chan struct{})
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		attempts <- r.Header.Clone()
		<-release
		app.Text(http.StatusInternalServerError, "too late")(w, r)
	})
	c := startCommitting(t, "", behind.Addr, "confirm callback CALLBACKS\n answer_within 300ms\n wait 300ms")
	e := push("one", `{}`)
	want(t, "the sender", c.send(e), http.StatusServiceUnavailable, "in_progress", false)
	want(t, "a repeat", c.send(e), http.StatusServiceUnavailable, "in_progress", false)
	attempt := <-attempts
	want(t, "callback", c.confirmAt(attempt, nil, committedDone), http.StatusOK, "", false)
	wantCommitted(t, "the next delivery, while the app is still at it", c.send(e), true)
	close(release)
	c.WaitLine(`"attempt ended"`)
	wantCommitted(t, "after the app's 500", c.send(e), true)

	// An abort frees the event at once, and a kill -9 takes no attempt its word.
	want(t, "another event", c.send(push("two", `{"b":2}`)), http.StatusInternalServerError, "", false)
	release = make(chan struct{})
	want(t, "a third", c.send(push("three", `{"c":3}`)), http.StatusServiceUnavailable, "in_progress", false)
	<-attempts
	third := <-attempts
	c.Kill()
	close(release)
	c.start()
	want(t, "callback after kill -9", c.confirmAt(third, nil, committedDone), http.StatusOK, "", false)
	wantCommitted(t, "the third's next delivery", c.send(push("three", `{"c":3}`)), true)
	c.silent(third)
}

// TestWhatOnlyAllHandlersTogetherShowIsRefusedAtTheStart: and a reload to it leaves the running config as it is.
func TestWhatOnlyAllHandlersTogetherShowIsRefusedAtTheStart(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	c := startCommitting(t, "", behind.Addr, "")
	for name, r := range map[string]struct {
		site string
		want []string
	}{
		"no callback handler": {
			"webhook_gate /a github x {\n confirm callback http://127.0.0.1:9081\n}",
			[]string{`source "github"`, "webhook_gate_callback"},
		},
		"a proxy that repeats": {
			"webhook_gate /a github x\n reverse_proxy /a 127.0.0.1:1 {\n lb_retries 1\n lb_retry_match {\n path /*\n }\n}",
			[]string{"server srv0", "lb_retry_match", "`method GET`"},
		},
		"two outcomes of a source": {
			"webhook_gate /a github x {\n source main\n outcome http://a.test/\n}\n webhook_gate /b github x {\n source main\n outcome http://b.test/\n}",
			[]string{`source "main"`, "differ in `confirm`, `outcome`, `in_doubt`"},
		},
		"a callback at an unset variable": {
			"webhook_gate /a github x {\n confirm callback {env.NOT_SET_ANYWHERE}\n}\n webhook_gate_callback /confirm",
			[]string{"confirm callback", "NOT_SET_ANYWHERE"},
		},
		"an outcome at an unset variable": {
			"webhook_gate /a github x {\n outcome http://{env.NOT_SET_ANYWHERE}/o\n}",
			[]string{"outcome", "NOT_SET_ANYWHERE"},
		},
	} {
		text := fmt.Sprintf("{\n\tadmin %s\n\tpersist_config off\n\tauto_https off\n\twebhook_gate {\n\t\tstore bolt %s\n\t}\n}\nhttp://%s {\n\tbind 127.0.0.1\n\t%s\n}\n", c.admin, c.store, c.addr, r.site)
		file := caddyfile(t, text)
		code, out := c.command("reload", "--config", file, "--adapter", "caddyfile", "--address", c.admin)
		for _, part := range r.want {
			if code == 0 || !strings.Contains(strings.ReplaceAll(out, `\`, ""), part) {
				t.Errorf("%s: exit %d, the message lacks %q:\n%s", name, code, part, out)
			}
		}
	}
	want(t, "the running config", c.send(push("one", `{}`)), http.StatusOK, "", false)

	c.Kill()
	file := caddyfile(t, "{\n\tadmin off\n\tauto_https off\n}\nhttp://127.0.0.1:0 {\n\twebhook_gate /a github x {\n\t\tconfirm callback http://127.0.0.1:9081\n\t}\n}\n")
	if code, out := c.command("run", "--config", file, "--adapter", "caddyfile"); code == 0 || !strings.Contains(out, "webhook_gate_callback") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
