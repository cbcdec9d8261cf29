package caddy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
)

func TestRecorder(t *testing.T) {
	t.Parallel()
	t.Run("the first final status counts, informational ones do not", func(t *testing.T) {
		t.Parallel()
		w := newRecorder(10)
		for _, status := range []int{103, 101, 201, 500} {
			w.WriteHeader(status)
		}
		if w.status != 201 {
			t.Errorf("status %d, want 201", w.status)
		}
	})
	t.Run("a status that is none is not taken for success", func(t *testing.T) {
		t.Parallel()
		w := newRecorder(10)
		w.WriteHeader(0)
		_, _ = io.WriteString(w, "body")
		if w.status != 0 {
			t.Errorf("status %d, want none", w.status)
		}
	})
	t.Run("a body of exactly the limit is kept, one byte more drops all of it", func(t *testing.T) {
		t.Parallel()
		w := newRecorder(4)
		_, _ = io.WriteString(w, "1234")
		if a := w.answer(nil); string(a.Body) != "1234" || a.BodyDropped || a.Status != 200 {
			t.Errorf("got %+v", a)
		}
		if n, err := io.WriteString(w, "5"); n != 1 || err != nil {
			t.Errorf("Write gave %d, %v", n, err)
		}
		if a := w.answer(nil); a.Body != nil || !a.BodyDropped {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("only allowed headers are kept, and none that could split an answer", func(t *testing.T) {
		t.Parallel()
		w := newRecorder(4)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header()["X-Own"] = []string{"one", "two\r\nSet-Cookie: c=d"}
		a := w.answer([]string{"content-type", "X-Own", "X-Absent"})
		if len(a.Header) != 2 || a.Header[0].Name != "Content-Type" || a.Header[1].Value != "one" {
			t.Errorf("got %+v", a.Header)
		}
	})
}

func TestReadAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		size     int
		declared int64
		limit    int64
		err      error
	}{
		{"empty", 0, 0, 10, nil},
		{"declared and right", 10, 10, 10, nil},
		{"exactly the limit, undeclared", 10, -1, 10, nil},
		{"one above the limit, undeclared", 11, -1, 10, errBodySize},
		{"much above the limit", 1 << 20, -1, 10, errBodySize},
		{"larger than every first buffer", 1 << 20, 1 << 20, 1 << 20, nil},
		{"one above a large limit", 1<<20 + 1, -1, 1 << 20, errBodySize},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := bytes.Repeat([]byte("x"), c.size)
			var fed bytes.Buffer
			got, err := readAll(io.MultiReader(bytes.NewReader(body[:c.size/2]), bytes.NewReader(body[c.size/2:])), &fed, c.declared, c.limit)
			if !errors.Is(err, c.err) {
				t.Fatalf("got error %v, want %v", err, c.err)
			}
			if err == nil && (!bytes.Equal(got, body) || !bytes.Equal(fed.Bytes(), body)) {
				t.Errorf("got %d bytes, fed %d, want %d", len(got), fed.Len(), c.size)
			}
		})
	}
}

func TestGateHeadersAreKnownInEverySpelling(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Webhook-Gate-Event": true, "webhook-gate-x": true, "WEBHOOK_GATE_TOKEN": true, "Webhook-Gate_In-Doubt": true,
		"Webhook-Gate": false, "Webhook-Id": false, "X-Webhook-Gate-Event": false, "": false,
	} {
		if got := isGateHeader(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
	if err := checkReceiptHeader("webhook-gate-event"); err == nil {
		t.Error("a gate header was let into receipts")
	}
	if err := checkReceiptHeader(http.CanonicalHeaderKey("set-cookie")); err == nil {
		t.Error("Set-Cookie was let into receipts")
	}
}
