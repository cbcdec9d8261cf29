package integration

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/fault"
	"github.com/einlass/einlass/integration/internal/proc"
)

// nobody is where no test machine has anybody listening.
const nobody = "127.0.0.1:1"

// times leaves room for machines that are busy. What a delivery is told that is not the rest of a lease is 41.
const (
	times        = "forward_timeout 3s\n lease 8s\n retry_after 41s\n"
	leaseSeconds = 8
)

// network is one gate process with a source for each policy. Where an attempt goes is said by its delivery, so that
// each event can have a network and an app of its own.
type network struct {
	*gate
	questions *fault.Proxy // in front of the place where the outcome question is answered
	answers   string       // that place
	callbacks string
	busy      chan struct{} // bounds the deliveries at a time: what is too late because of the others proves nothing

	mu   sync.Mutex
	done map[string]string // what the apps have committed, by event: the receipt's body
}

// startNetwork starts the gate with these sources, by name, and the further words of each.
func startNetwork(t *testing.T, sources map[string]string) *network {
	t.Helper()
	n := &network{done: map[string]string{}, busy: make(chan struct{}, 16), callbacks: proc.FreeAddr(t)}
	n.answers = app.Start(t, n.outcome).Addr
	n.questions = fault.Start(t, n.answers)
	n.gate = &gate{t: t, dir: t.TempDir(), addr: proc.FreeAddr(t)}
	n.config = filepath.Join(n.dir, "Caddyfile")
	var gates strings.Builder
	for name, words := range sources {
		words = strings.NewReplacer("QUESTIONS", n.questions.Addr, "CALLBACKS", n.callbacks).Replace(words)
		fmt.Fprintf(&gates, "\twebhook_gate /%s github %q {\n\t\tsource %[1]s\n\t\treplay_guard off\n\t\t%[3]s\n\t}\n", name, secret, words)
	}
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	webhook_gate {
		store bolt %s
	}
}
http://%s {
	bind 127.0.0.1
%s
	@tls header Test-Hop tls
	reverse_proxy @tls {http.request.header.Test-Upstream} {
		transport http {
			tls_insecure_skip_verify
		}
	}
	@sick header Test-Hop sick
	reverse_proxy @sick %s {
		fail_duration 1m
	}
	reverse_proxy {http.request.header.Test-Upstream}
}
http://%s {
	bind 127.0.0.1
	webhook_gate_callback
}
`, filepath.Join(n.dir, "receipts.db"), n.addr, gates.String(), nobody, n.callbacks)
	if err := os.WriteFile(n.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	return n
}

// commits is an app's work: it is done, and on record, before an answer is given.
func (n *network) commits(r *http.Request) (body string) {
	id := r.Header.Get("Webhook-Gate-Event")
	body = fmt.Sprintf("%s, attempt %s", id, r.Header.Get("Webhook-Gate-Attempt"))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[id] = body
	return body
}

func done(n *network) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { app.Text(http.StatusCreated, n.commits(r))(w, r) }
}

func chunked(n *network) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := n.commits(r)
		app.Text(http.StatusCreated, text[:5])(w, r)
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write([]byte(text[5:]))
	}
}

// halfZipped gives a body that has its length, but not its end.
func halfZipped(n *network) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(n.commits(r)))
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		app.Text(http.StatusCreated, b.String()[:b.Len()-12])(w, r)
	}
}

// saying gives a verdict with the answer, in the last of its headers.
func saying(word string, status int) func(*network) http.HandlerFunc {
	return func(n *network) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text := "nothing done"
			if word != "aborted" {
				text = n.commits(r)
			}
			w.Header().Set("Webhook-Gate-Outcome", word)
			app.Text(status, text)(w, r)
		}
	}
}

func failing(*network) http.HandlerFunc { return app.Text(http.StatusInternalServerError, "broken") }

// outcome answers the outcome question from what the apps have committed.
func (n *network) outcome(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	body, ok := n.done[r.URL.Query().Get("event")]
	n.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"outcome": "committed", "status": http.StatusCreated, "content_type": "text/plain", "body": body})
}

// play is a story under one of the policies: the attempt, what the sender gets, and what its next deliveries get.
func play(s *story) {
	if s.warm {
		s.expect("the event before", s.deliver(s.id+"-before", s.proxy.Addr), http.StatusCreated, "", false, "")
	}
	if s.stalls {
		go func() {
			s.proxy.Reached()
			s.proxy.Release()
		}()
	}
	upstream := s.proxy.Addr
	if s.nobody {
		upstream = nobody
	}
	first := s.deliver(s.id, upstream)
	seen := len(s.attempts())
	if seen != s.seen && (s.seen >= 0 || seen > 1) {
		s.errorf("the app had the attempt %d times, want %d", seen, s.seen)
	}
	end := s.end
	if end == either {
		end = map[string]string{"": committed, "in_doubt": inDoubt, "temporary_processing_failure": aborted}[first.Code]
	}
	switch end {
	case committed:
		s.committed(first)
	case refused, aborted:
		s.freed(first, end)
	case inDoubt:
		s.doubtful(first)
	default:
		s.errorf("first delivery: %d %q", first.Status, first.Code)
	}
	if !s.alone {
		other := s.deliver(s.id+"-after", s.proxy.Addr)
		if s.expect("the event after", other, http.StatusCreated, "", false, ""); other.Body != s.id+"-after, attempt 1" && s.hop.app == nil {
			s.errorf("the event after got %q", other.Body)
		}
	}
}

// committed: the sender has the app's answer, and so has each repeat.
func (s *story) committed(first answer) {
	seen := len(s.attempts())
	if s.other {
		s.expect("first delivery", first, first.Status, "", false, "")
	} else if s.expect("first delivery", first, http.StatusCreated, "", false, ""); first.Body != s.id+", attempt 1" {
		s.errorf("first delivery: got %q", first.Body)
	}
	s.repeated(first, seen)
}

// repeated: what the sender got is what it gets again, and the app hears nothing of it.
func (s *story) repeated(first answer, seen int) {
	again := s.deliver(s.id, s.proxy.Addr)
	if s.expect("repeat", again, first.Status, "", true, ""); again.Body != first.Body {
		s.errorf("repeat: got %q, first was %q", again.Body, first.Body)
	}
	if n := len(s.attempts()); n != seen {
		s.errorf("a repeat reached the app: %d attempts, want %d", n, seen)
	}
}

// freed: the next delivery is the next attempt, at once.
func (s *story) freed(first answer, end string) {
	if end == refused {
		s.expect("first delivery", first, http.StatusInternalServerError, "", false, "41")
	} else {
		s.expect("first delivery", first, http.StatusServiceUnavailable, "temporary_processing_failure", false, "41")
	}
	s.app.Script(done(s.network))
	s.again(s.deliver(s.id, s.proxy.Addr), "")
}

// again: the delivery was the second attempt.
func (s *story) again(a answer, doubt string) {
	attempts := s.attempts()
	if s.expect("second attempt", a, http.StatusCreated, "", false, ""); a.Body != s.id+", attempt 2" || len(attempts) == 0 {
		s.errorf("second attempt: got %q, the app had %d attempts", a.Body, len(attempts))
		return
	}
	header := attempts[len(attempts)-1].Header
	if header.Get("Webhook-Gate-Attempt") != "2" || header.Get("Webhook-Gate-In-Doubt") != doubt {
		s.errorf("second attempt: number %q, in doubt %q; want 2 and %q", header.Get("Webhook-Gate-Attempt"), header.Get("Webhook-Gate-In-Doubt"), doubt)
	}
	s.repeated(a, len(attempts))
}

// doubtful: what comes next is the policy's.
func (s *story) doubtful(first answer) {
	s.expect("first delivery", first, http.StatusServiceUnavailable, "in_doubt", false, "lease")
	s.app.Script(done(s.network))
	seen := len(s.attempts())
	s.network.mu.Lock()
	body, ok := s.done[s.id]
	s.network.mu.Unlock()
	next := s.deliver(s.id, s.proxy.Addr)
	switch {
	case s.source == "ask" && ok:
		if s.expect("learned by asking", next, http.StatusCreated, "", true, ""); next.Body != body || len(s.attempts()) != seen {
			s.errorf("learned by asking: got %q, want %q; the app had %d attempts", next.Body, body, len(s.attempts()))
		}
		s.repeated(next, seen)
		return
	case s.source == "ask":
		s.again(next, "true")
		return
	}
	s.expect("before the lease's end", next, http.StatusServiceUnavailable, "in_doubt", false, "lease")
	if n := len(s.attempts()); n != seen {
		s.errorf("the app had %d attempts before the lease's end, want %d", n, seen)
	}
	last := s.until()
	if s.source == "redeliver" {
		s.again(last, "true")
		return
	}
	s.expect("held", last, http.StatusServiceUnavailable, "in_doubt", false, "41")
	if n := len(s.attempts()); n != seen {
		s.errorf("the app had %d attempts, want %d: a person decides", n, seen)
	}
}

// unhealthy: a proxy that knows of no healthy app sends nothing.
func unhealthy(s *story) {
	for _, id := range []string{s.id + "-before", s.id} {
		s.expect(id, s.deliver(id, s.proxy.Addr), http.StatusServiceUnavailable, "temporary_processing_failure", false, "41")
	}
	s.again(s.deliver(s.id, s.proxy.Addr), "")
}

func TestFaultsOnTheHopToTheAppComeToWhatTheTableSays(t *testing.T) {
	n := startNetwork(t, map[string]string{
		"redeliver": times + "in_doubt redeliver",
		"hold":      times + "in_doubt hold",
		"ask":       times + "outcome http://QUESTIONS/outcome",
	})
	var stories []*story
	for _, h := range hops() {
		for _, source := range []string{"redeliver", "hold", "ask"} {
			if source == "redeliver" || len(h.text) < 1<<20 { // large ones once
				stories = append(stories, &story{network: n, hop: h, source: source, run: play})
			}
		}
	}
	stories = append(stories, &story{network: n, source: "redeliver", run: unhealthy, hop: hop{
		name: "no healthy app", header: http.Header{"Test-Hop": {"sick"}},
	}})
	tell(t, stories)
	n.WaitLine("the next handler refused with status 503") // of the hop without a healthy app
	if strings.Contains(n.Output(), "requests were sent more than once") {
		t.Error("an attempt was sent more than once")
	}
}
