package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
)

func TestWhatIsRefusedIsNotForwardedAndUsesUpNothing(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "max_body 64B\n event_type header X-GitHub-Event\n events push ping")
	e := push("one", `{"a":1}`)
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		status int
		code   string
	}{
		{"no signature", func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, 401, "authentication"},
		{"another signature", func(r *http.Request) {
			r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
		}, 401, "authentication"},
		{"the signature twice", func(r *http.Request) {
			r.Header.Add("X-Hub-Signature-256", r.Header.Get("X-Hub-Signature-256"))
		}, 400, "ambiguous_header"},
		{"another body", func(r *http.Request) { setBody(r, `{"a":2}`) }, 401, "authentication"},
		{"a body one byte above the limit", func(r *http.Request) { setBody(r, strings.Repeat("a", 65)) }, 413, "body_size"},
		{"the same without a declared length", func(r *http.Request) {
			r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(strings.Repeat("a", 65))), -1, nil
		}, 413, "body_size"},
		{"no id", func(r *http.Request) { r.Header.Del("X-GitHub-Delivery") }, 422, "event_contract"},
		{"two ids", func(r *http.Request) { r.Header.Add("X-GitHub-Delivery", "two") }, 400, "ambiguous_header"},
		{"a type that is not let in", func(r *http.Request) { r.Header.Set("X-GitHub-Event", "star") }, 422, "event_contract"},
		{"GET", func(r *http.Request) { r.Method = http.MethodGet }, 405, "method"},
		{"HEAD", func(r *http.Request) { r.Method = http.MethodHead }, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := g.request(context.Background(), e)
			c.change(req)
			a, err := do(req)
			if err != nil && !strings.Contains(err.Error(), "EOF") {
				t.Fatal(err)
			}
			if a.Status != c.status || (c.code != "" && a.Code != c.code) {
				t.Fatalf("got %d %q, want %d %q", a.Status, a.Code, c.status, c.code)
			}
			if c.status == 405 && a.Header.Get("Allow") != "POST" {
				t.Fatalf("Allow %q", a.Header.Get("Allow"))
			}
			for _, told := range []string{"signature", "secret", "mismatch", "X-Hub"} {
				if strings.Contains(a.Body, told) {
					t.Fatalf("the answer tells the caller too much: %s", a.Body)
				}
			}
		})
	}
	if n := len(behind.Requests()); n != 0 {
		t.Fatalf("the app was reached %d times", n)
	}
	want(t, "the event itself", g.send(e), http.StatusOK, "", false)
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
}

func TestASlowOrBrokenBodyIsRefusedAndUsesUpNothing(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "read_timeout 500ms")
	e := push("one", `{"a":"0123456789"}`)
	raw := rawRequest(g, e)
	half := raw[:len(raw)-5]

	status := exchange(t, g.addr, half, false)
	if !strings.HasPrefix(status, "HTTP/1.1 408 ") {
		t.Errorf("stalled body: got %q, want 408", status)
	}
	// The sender's own close: an answer may or may not arrive, nothing may be forwarded.
	if status = exchange(t, g.addr, half, true); status != "" && !strings.HasPrefix(status, "HTTP/1.1 400 ") {
		t.Errorf("cut body: got %q, want 400 or none", status)
	}
	if n := len(behind.Requests()); n != 0 {
		t.Fatalf("the app was reached %d times", n)
	}
	want(t, "the event itself", g.send(e), http.StatusOK, "", false)
}

// rawRequest gives the bytes of a signed request.
func rawRequest(g *gate, e event) string {
	req := g.request(context.Background(), e)
	var b strings.Builder
	fmt.Fprintf(&b, "POST /hook HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", g.addr, len(e.body))
	_ = req.Header.Write(&b)
	return b.String() + "\r\n" + e.body
}

// exchange writes bytes on a connection of its own and gives the status line of the answer, if there is one.
func exchange(t *testing.T, addr, raw string, closeWrite bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(proc.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	if closeWrite {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil && line == "" {
		return ""
	}
	return line
}

// TestARefusalDoesNotWaitForTheBody: what the headers alone decide is answered although the sender holds its body
// back, with and without Expect, and the connection is not kept.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "max_body 1KiB")
	right := "X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) + "\r\n"
	for name, c := range map[string]struct{ head, want string }{
		"no signature":                {"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n", "HTTP/1.1 401 "},
		"no signature, Expect":        {"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 401 "},
		"no signature, chunked":       {"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 401 "},
		"too large":                   {"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\n" + right + "Content-Length: 1025\r\n\r\n", "HTTP/1.1 413 "},
		"too large, Expect":           {"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\n" + right + "Content-Length: 1025\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 413 "},
		"a method that is not let in": {"PUT /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n", "HTTP/1.1 405 "},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// Well below Caddy's own idle timeout of a minute, which would end the wait for the body.
			if err := conn.SetDeadline(time.Now().Add(proc.Patience / 2)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, c.head); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn) // to its end: the connection is closed behind the answer
			if err != nil || !strings.HasPrefix(string(answer), c.want) {
				t.Fatalf("%v, got %q, want %q", err, answer, c.want)
			}
		})
	}
	if n := len(behind.Requests()); n != 0 {
		t.Fatalf("the app was reached %d times", n)
	}
}
