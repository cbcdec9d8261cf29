package integration

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to look into the apps' files, and to get in their way

	"github.com/einlass/einlass/integration/internal/proc"
)

// What the example apps owe a gate, with the test in the gate's place.

// said is what an app says of an event.
type said struct {
	Outcome     string `json:"outcome"`
	Status      int    `json:"status"`
	ContentType string `json:"content_type"`
	Body        string `json:"body"`
}

// attempt sends an attempt of an event straight to the app.
func (s *stage) attempt(event, token, body, confirm string) answer {
	s.t.Helper()
	a, err := s.try(event, token, body, confirm)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *stage) try(event, token, body, confirm string) (answer, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.addr+"/hook", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Webhook-Gate-Source", "test")
	req.Header.Set("Webhook-Gate-Event", event)
	req.Header.Set("Webhook-Gate-Attempt", "1")
	req.Header.Set("Webhook-Gate-Token", token)
	if confirm != "" {
		req.Header.Set("Webhook-Gate-Confirm", confirm)
	}
	return do(req)
}

// says compares an answer with a status and a verdict.
func says(t *testing.T, what string, got answer, status int, outcome string) {
	t.Helper()
	if got.Status != status || got.Header.Get("Webhook-Gate-Outcome") != outcome {
		t.Fatalf("%s: got %d %q, want %d %q; body %q", what, got.Status, got.Header.Get("Webhook-Gate-Outcome"), status, outcome, got.Body)
	}
}

// ask puts the outcome question.
func (s *stage) ask(source, event, token string) (status int, v said) {
	s.t.Helper()
	query := url.Values{"source": {source}, "event": {event}}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+"/webhook-outcome?"+query.Encode(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Webhook-Gate-Token", token)
	}
	a, err := do(req)
	if err == nil && a.Status == http.StatusOK {
		err = json.Unmarshal([]byte(a.Body), &v)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return a.Status, v
}

// asked wants a status in answer to the outcome question.
func (s *stage) asked(event, token string, want int) said {
	s.t.Helper()
	status, v := s.ask("test", event, token)
	if status != want {
		s.t.Fatalf("outcome of %s: got %d, want %d", event, status, want)
	}
	return v
}

// waitFor asks until it gets a status.
func (s *stage) waitFor(source, event string, want int) {
	s.t.Helper()
	for end := time.Now().Add(proc.Patience); time.Now().Before(end); {
		if status, _ := s.ask(source, event, ""); status == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatalf("outcome of %s: no %d", event, want)
}

func (s *stage) open() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.dir, "counter")+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// sql runs a statement in the app's file.
func (s *stage) sql(statement string) {
	s.t.Helper()
	if _, err := s.open().ExecContext(s.t.Context(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// lock keeps the app from writing until release is called.
func (s *stage) lock() (release func()) {
	s.t.Helper()
	tx, err := s.open().BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

func TestExampleAppsKeepTheContract(t *testing.T) {
	eachApp(t, func(t *testing.T, app shown) {
		s := newStage(t, app, "")
		t.Run("a known event is answered from its row", func(t *testing.T) {
			before := s.counter()
			first := s.attempt("known", "1", `{"amount":1}`, "")
			says(t, "first", first, http.StatusOK, "committed")
			says(t, "another", s.attempt("another", "1", `{"amount":1}`, ""), http.StatusOK, "committed")
			again := s.attempt("known", "2", `{"amount":1}`, "")
			says(t, "again", again, http.StatusOK, "committed")
			if v := s.asked("known", "2", http.StatusOK); again.Body != first.Body ||
				v != (said{"committed", http.StatusOK, first.Header.Get("Content-Type"), first.Body}) {
				t.Fatalf("first %q, again %q, asked %+v", first.Body, again.Body, v)
			}
			s.total(before + 2)
		})
		t.Run("nothing is known of an event that never came", func(t *testing.T) {
			s.asked("unknown", "1", http.StatusNotFound)
			s.asked("unknown", "", http.StatusNotFound)
		})
		t.Run("ids are UTF-8", func(t *testing.T) {
			says(t, "first", s.attempt("zoë 1", "1", `{"amount":1}`, ""), http.StatusOK, "committed")
			s.asked("zoë 1", "1", http.StatusOK)
		})
		t.Run("too large and not JSON are final", func(t *testing.T) {
			before := s.counter()
			says(t, "too large", s.attempt("large", "1", `{"amount":1}`+strings.Repeat(" ", 64<<10), ""), http.StatusRequestEntityTooLarge, "rejected")
			says(t, "not JSON", s.attempt("text", "1", `amount`, ""), http.StatusUnprocessableEntity, "rejected")
			if v := s.asked("text", "1", http.StatusOK); v.Outcome != "rejected" || v.Status != http.StatusUnprocessableEntity {
				t.Fatalf("asked: %+v", v)
			}
			s.total(before)
		})
		t.Run("a body that breaks off is not the event", func(t *testing.T) {
			before := s.counter()
			s.breakOff("broken")
			s.asked("broken", "1", http.StatusNotFound)
			says(t, "whole", s.attempt("broken", "1", `{"amount":2}`, ""), http.StatusOK, "committed")
			s.total(before + 2)
		})
		t.Run("of many at a time one has the effect", func(t *testing.T) {
			before := s.counter()
			answers := make([]string, 8)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					a, err := s.try("many", fmt.Sprint(i), `{"amount":4}`, "")
					answers[i] = fmt.Sprint(a.Status, a.Body, err)
				})
			}
			all.Wait()
			for _, got := range answers {
				if got != answers[0] || !strings.HasPrefix(got, "200") {
					t.Fatalf("got %q", answers)
				}
			}
			s.total(before + 4)
		})
		t.Run("all of it outlives kill -9", func(t *testing.T) {
			says(t, "first", s.attempt("kept", "1", `{"amount":8}`, ""), http.StatusOK, "committed")
			before := s.counter()
			s.app.Kill()
			s.start("")
			s.total(before)
			s.asked("kept", "1", http.StatusOK)
		})
	})
}

// breakOff sends the half of an attempt's body and waits for the app's end of the connection.
func (s *stage) breakOff(event string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /hook HTTP/1.1\r\nHost: app\r\nWebhook-Gate-Source: test\r\nWebhook-Gate-Event: %s\r\nContent-Length: 12\r\n\r\n{\"amou", event)
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(proc.Patience))
		_, err = io.Copy(io.Discard, bufio.NewReader(conn))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// elsewhere is the empty 200 of something that is not the gate.
const elsewhere = -1

// callbacks is a gate's callback listener that gives its answers one after the other; 0 is none until the test ends.
type callbacks struct {
	*httptest.Server
	calls atomic.Int64
	got   chan said
}

func startCallbacks(t *testing.T, token string, answers ...int) *callbacks {
	c := &callbacks{got: make(chan said, 16)}
	over := make(chan struct{})
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v said
		err := json.NewDecoder(r.Body).Decode(&v)
		if err != nil || r.Method != http.MethodPost || r.URL.RawQuery != "source=test&event=one" || r.Header.Get("Webhook-Gate-Token") != token {
			t.Errorf("callback: %s %s, token %q, %v", r.Method, r.URL, r.Header.Get("Webhook-Gate-Token"), err)
		}
		status := answers[min(int(c.calls.Add(1)), len(answers))-1]
		c.got <- v
		if status == 0 {
			<-over
			return
		}
		if status == http.StatusOK {
			_, _ = io.WriteString(w, `{"state":"committed"}`)
			return
		}
		w.WriteHeader(max(status, http.StatusOK))
	}))
	t.Cleanup(func() {
		close(over)
		c.Close()
	})
	return c
}

// next is what the app says next.
func (c *callbacks) next(t *testing.T) said {
	t.Helper()
	select {
	case v := <-c.got:
		return v
	case <-time.After(proc.Patience):
		t.Fatal("no callback")
		return said{}
	}
}

func (c *callbacks) url() string { return c.URL + "/confirm?source=test&event=one" }

func TestExampleAppsConfirm(t *testing.T) {
	eachApp(t, func(t *testing.T, app shown) {
		t.Run("what they answer, again after a 503", func(t *testing.T) {
			s := newStage(t, app, "")
			gate := startCallbacks(t, "t1", http.StatusServiceUnavailable, http.StatusOK)
			a := s.attempt("one", "t1", `{"amount":5}`, gate.url())
			says(t, "answer", a, http.StatusOK, "committed")
			for range 2 {
				if v := gate.next(t); v != (said{"committed", http.StatusOK, a.Header.Get("Content-Type"), a.Body}) {
					t.Fatalf("told %+v, answered %q", v, a.Body)
				}
			}
		})
		t.Run("a refusal, too", func(t *testing.T) {
			s := newStage(t, app, "")
			gate := startCallbacks(t, "t1", http.StatusOK)
			a := s.attempt("one", "t1", `{"amount":0}`, gate.url())
			says(t, "answer", a, http.StatusUnprocessableEntity, "rejected")
			if v := gate.next(t); v != (said{"rejected", a.Status, a.Header.Get("Content-Type"), a.Body}) {
				t.Fatalf("told %+v, answered %q", v, a.Body)
			}
		})
		t.Run("once where the gate refuses it, and say so", func(t *testing.T) {
			for _, refusal := range []int{http.StatusConflict, elsewhere} {
				s := newStage(t, app, "")
				gate := startCallbacks(t, "t1", refusal)
				says(t, "answer", s.attempt("one", "t1", `{"amount":5}`, gate.url()), http.StatusOK, "committed")
				s.app.WaitLine("could not be told")
				if n := gate.calls.Load(); n != 1 {
					t.Fatalf("the gate was told %d times", n)
				}
			}
		})
		t.Run("never in the way of the answer", func(t *testing.T) {
			s := newStage(t, app, "")
			gate := startCallbacks(t, "t1", 0)
			says(t, "the gate says nothing", s.attempt("one", "t1", `{"amount":5}`, gate.url()), http.StatusOK, "committed")
			if n := gate.calls.Load(); n >= 4 {
				t.Fatalf("the answer waited for all %d tries", n)
			}
			says(t, "nobody listens", s.attempt("two", "t1", `{"amount":5}`, "http://"+proc.FreeAddr(t)+"/"), http.StatusOK, "committed")
			s.total(10)
		})
	})
}

func TestExampleAppRefusesFencedAttemptsForGood(t *testing.T) {
	s := newStage(t, shownApps[0], "", "-fence")
	s.asked("one", "", http.StatusNotFound) // which attempt? nothing to refuse
	s.asked("one", "t2", http.StatusGone)
	s.asked("one", "t1", http.StatusGone) // takes nothing back
	for range 2 {
		for _, token := range []string{"t1", "t2", ""} {
			says(t, "token "+token, s.attempt("one", token, `{"amount":5}`, ""), http.StatusServiceUnavailable, "aborted")
		}
		s.total(0)
		s.app.Kill()
		s.start("")
	}
	says(t, "another event", s.attempt("two", "t1", `{"amount":1}`, ""), http.StatusOK, "committed")
	says(t, "a later attempt", s.attempt("one", "t3", `{"amount":5}`, ""), http.StatusOK, "committed")
	s.asked("one", "t3", http.StatusOK)
	says(t, "a fenced attempt of a known event", s.attempt("one", "t1", `{"amount":5}`, ""), http.StatusOK, "committed")
	s.total(6)
}

func TestExampleAppWithAFenceBehindTheGate(t *testing.T) {
	s := behindGate(t, shownApps[0], "before_commit", "-fence")
	want(t, "first", s.gate.send(five), http.StatusServiceUnavailable, "in_doubt", false)
	s.crashed()
	s.start("")
	s.deliver("second", http.StatusOK, false)
	s.deliver("third", http.StatusOK, true)
	var fenced, token string
	row := s.open().QueryRowContext(t.Context(), `SELECT f.token, e.token FROM fences f JOIN effects e USING (source, event)`)
	if err := row.Scan(&fenced, &token); err != nil || fenced >= token {
		t.Fatalf("fenced %q, done by %q, %v", fenced, token, err)
	}
}

func TestExampleAppAtEachLevel(t *testing.T) {
	for level, c := range []struct {
		outcome             string
		effects, rows       int
		question, callbacks int
	}{
		{"", 2, 0, http.StatusNotImplemented, 0},
		{"committed", 2, 0, http.StatusNotImplemented, 2},
		{"committed", 1, 1, http.StatusNotImplemented, 2},
		{"committed", 1, 1, http.StatusOK, 2},
	} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			s := newStage(t, shownApps[0], "", "-level", fmt.Sprint(level))
			gate := startCallbacks(t, "t1", http.StatusOK)
			for range 2 {
				says(t, "attempt", s.attempt("one", "t1", `{"amount":5}`, gate.url()), http.StatusOK, c.outcome)
			}
			s.asked("one", "t1", c.question)
			var effects, rows int
			err := s.open().QueryRowContext(t.Context(),
				`SELECT (SELECT count(*) FROM effects WHERE amount = 5 AND token = 't1' AND attempt = 1), (SELECT count(*) FROM outcomes)`).Scan(&effects, &rows)
			if err != nil || effects != c.effects || rows != c.rows || int(gate.calls.Load()) != c.callbacks {
				t.Fatalf("%d effects, %d rows, %d callbacks, %v; want %+v", effects, rows, gate.calls.Load(), err, c)
			}
		})
	}
}

func TestExampleAppCrashesWhenItIsToldTo(t *testing.T) {
	s := newStage(t, shownApps[0], "before_answer:2")
	says(t, "first", s.attempt("one", "1", `{"amount":5}`, ""), http.StatusOK, "committed")
	if a, err := s.try("two", "1", `{"amount":5}`, ""); err == nil {
		t.Fatalf("second: got %d", a.Status)
	}
	s.crashed()
}
