package integration

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
)

// oracle is the place where the app is asked what became of its events.
type oracle struct {
	addr  string
	asked chan *http.Request

	mu  sync.Mutex
	say http.HandlerFunc
}

func startOracle(t *testing.T, say http.HandlerFunc) *oracle {
	t.Helper()
	o := &oracle{asked: make(chan *http.Request, 1<<10), say: say}
	o.addr = app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		say := o.say
		o.mu.Unlock()
		o.asked <- r
		say(w, r)
	}).Addr
	return o
}

func (o *oracle) script(say http.HandlerFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.say = say
}

// next is the next question, of this attempt.
func (o *oracle) next(t *testing.T, attempt http.Header) {
	t.Helper()
	r := <-o.asked
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || query.Get("source") != "github" || query.Get("event") != attempt.Get("X-Github-Delivery") || query.Get("mine") != "1" || len(query) != 3 {
		t.Fatalf("asked %s, %v", r.URL, err)
	}
	if token := attempt.Get("Webhook-Gate-Token"); r.Header.Get("Webhook-Gate-Token") != token || strings.Contains(r.RequestURI, token) || r.Method != http.MethodGet {
		t.Fatalf("asked %s %s with token %q, want %q", r.Method, r.RequestURI, r.Header.Get("Webhook-Gate-Token"), token)
	}
}

func TestTheAppIsAskedAtOnceAfterAKill(t *testing.T) {
	attempts := make(chan http.Header, 1)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	behind := app.Start(t, func(_ http.ResponseWriter, r *http.Request) {
		attempts <- r.Header.Clone()
		<-hang
	})
	o := startOracle(t, app.Text(http.StatusOK, committedDone))
	c := startCommitting(t, "", behind.Addr, "outcome http://"+o.addr+"/o?mine=1\n answer_within 300ms")
	e := push("a&b=c#d é", `{}`)
	want(t, "the sender", c.send(e), http.StatusServiceUnavailable, "in_progress", false)
	attempt := <-attempts
	c.Kill()
	c.start()
	o.next(t, attempt)
	c.WaitLine("outcome learned by asking the app")
	wantCommitted(t, "the next delivery", c.send(e), true)
	if n := len(behind.Requests()); n != 1 || len(o.asked) != 0 {
		t.Errorf("the app was reached %d times, %d further questions", n, len(o.asked))
	}
	c.silent(attempt)
}

// TestTheAppIsAskedAtTheNextDeliveryAndAtTheLeasesEnd: and not before, for the app may be at work.
func TestTheAppIsAskedAtTheNextDeliveryAndAtTheLeasesEnd(t *testing.T) {
	attempts := make(chan http.Header, 8)
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		attempts <- r.Header.Clone()
		app.Cut(w, r)
	})
	o := startOracle(t, app.Text(http.StatusOK, committedDone))
	c := startCommitting(t, "", behind.Addr, "outcome http://"+o.addr+"/o?mine=1\n forward_timeout 500ms\n lease 5500ms")
	began := time.Now()
	want(t, "one", c.send(push("one", `{"a":1}`)), http.StatusServiceUnavailable, "in_doubt", false)
	one := <-attempts
	want(t, "two", c.send(push("two", `{"b":2}`)), http.StatusServiceUnavailable, "in_doubt", false)
	two := <-attempts
	if len(o.asked) != 0 {
		t.Fatal("asked while the lease runs")
	}
	wantCommitted(t, "the next delivery of two", c.send(push("two", `{"b":2}`)), true)
	o.next(t, two)
	o.next(t, one)
	if took := time.Since(began); took < 5500*time.Millisecond {
		t.Errorf("asked %s after the attempt began", took)
	}
	c.WaitLine("outcome learned by asking the app")
	wantCommitted(t, "one", c.send(push("one", `{"a":1}`)), true)

	// The app refuses an attempt for good: it must not be confirmed any more.
	o.script(app.Text(http.StatusGone, ""))
	want(t, "three", c.send(push("three", `{"c":3}`)), http.StatusServiceUnavailable, "in_doubt", false)
	three := <-attempts
	behind.Script(app.Text(http.StatusOK, "ok"))
	want(t, "three again", c.send(push("three", `{"c":3}`)), http.StatusOK, "", false)
	if got := behind.Requests()[3].Header; got.Get("Webhook-Gate-Attempt") != "2" || got.Get("Webhook-Gate-In-Doubt") != "" {
		t.Errorf("attempt %q, in doubt %q", got.Get("Webhook-Gate-Attempt"), got.Get("Webhook-Gate-In-Doubt"))
	}
	three.Set("Webhook-Gate-Confirm", "http://"+c.callbacks+"/?source=github&event=three")
	want(t, "the first attempt confirms", c.confirmAt(three, nil, committedDone), http.StatusConflict, "attempt_closed", false)
	c.WaitLine("attempt_closed: ")
}

func TestAReloadChangesWhereTheAppIsAsked(t *testing.T) {
	attempts := make(chan http.Header, 1)
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		attempts <- r.Header.Clone()
		app.Cut(w, r)
	})
	o := startOracle(t, app.Text(http.StatusOK, committedDone))
	c := startCommitting(t, "", behind.Addr, "outcome http://"+proc.FreeAddr(t)+"/o?mine=1\n forward_timeout 500ms\n lease 5500ms")
	want(t, "one", c.send(push("one", `{}`)), http.StatusServiceUnavailable, "in_doubt", false)
	attempt := <-attempts
	want(t, "nobody to ask", c.send(push("one", `{}`)), http.StatusServiceUnavailable, "in_doubt", false)
	c.WaitLine("the outcome question was not answered")
	c.write(behind.Addr, "outcome http://"+o.addr+"/o?mine=1\n forward_timeout 500ms\n lease 5500ms")
	c.reload()
	o.next(t, attempt) // by itself: nothing was delivered
	c.WaitLine("outcome learned by asking the app")
	wantCommitted(t, "the next delivery", c.send(push("one", `{}`)), true)
	c.silent(attempt)
}

func TestAStoppedGateWaitsNoLongerThanGracePeriodAndAsksAtItsNextStart(t *testing.T) {
	attempts := make(chan http.Header, 1)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	behind := app.Start(t, func(_ http.ResponseWriter, r *http.Request) {
		attempts <- r.Header.Clone()
		<-hang
	})
	o := startOracle(t, app.Text(http.StatusNotFound, ""))
	c := startCommitting(t, "grace_period 1s", behind.Addr, "outcome http://"+o.addr+"/o?mine=1\n answer_within 300ms")
	want(t, "the sender", c.send(push("one", `{}`)), http.StatusServiceUnavailable, "in_progress", false)
	attempt := <-attempts
	began := time.Now()
	c.Signal(syscall.SIGTERM)
	c.WaitLine("waiting for running attempts")
	c.WaitLine("grace period over with attempts running")
	if code, took := c.WaitExit(), time.Since(began); code != 0 || took < time.Second || took > 30*time.Second {
		t.Fatalf("exit %d after %s", code, took)
	}
	if len(o.asked) != 0 {
		t.Fatal("asked while the attempt ran")
	}
	c.start()
	o.next(t, attempt)
	c.WaitLine("outcome learned by asking the app")
	behind.Script(app.Text(http.StatusOK, "ok"))
	want(t, "the next delivery", c.send(push("one", `{}`)), http.StatusOK, "", false)
	if got := behind.Requests()[1].Header; got.Get("Webhook-Gate-Attempt") != "2" || got.Get("Webhook-Gate-In-Doubt") != "true" {
		t.Errorf("attempt %q, in doubt %q: the app may still commit the first", got.Get("Webhook-Gate-Attempt"), got.Get("Webhook-Gate-In-Doubt"))
	}
}
