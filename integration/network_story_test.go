package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/fault"
	"github.com/einlass/einlass/integration/internal/proc"
)

// story is what came of one event. Stories run at the same time: most of their time is a lease's.
type story struct {
	*network
	hop
	source string
	run    func(*story)
	id     string
	app    *app.App
	proxy  *fault.Proxy
	log    string

	mu     sync.Mutex
	faults []string
}

func (s *story) errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// tell runs the stories and reports each as a test.
func tell(t *testing.T, stories []*story) {
	t.Helper()
	var all sync.WaitGroup
	for i, s := range stories {
		s.id = fmt.Sprintf("%s-%d", s.source, i)
		behind := done(s.network)
		if s.hop.app != nil {
			behind = s.hop.app(s.network)
		}
		s.app = app.Start(t, behind)
		s.proxy = fault.Start(t, s.app.Addr, s.hop.faults...)
		all.Go(func() { s.run(s) })
	}
	all.Wait()
	var lines []string
	for line := range strings.Lines(stories[0].Output()) {
		if strings.Contains(line, marker) {
			t.Errorf("what an app has made up is in the log: %.300q", line)
		}
		// reverse_proxy logs a request whose answer breaks off with all its headers; no word of the gate's keeps it from that.
		if !strings.Contains(line, "aborting with incomplete response") {
			lines = append(lines, line)
		}
	}
	for _, s := range stories {
		s.log = strings.Join(lines, "")
		t.Run(s.source+": "+s.name, func(t *testing.T) {
			s.once()
			for _, f := range s.faults {
				t.Error(f)
			}
		})
	}
}

// deliver sends the story's event, or another.
func (s *story) deliver(id, upstream string) answer {
	text := s.text
	switch {
	case id != s.id:
		text = id
	case text == "empty":
		text = ""
	case text == "":
		text = id
	}
	req := signed(s.t, s.t.Context(), "http://"+s.addr+"/"+s.source, push(id, text))
	for name, values := range s.header {
		req.Header[name] = values
	}
	if id == s.id {
		s.header = nil // of the first delivery only
	}
	req.Header.Set("Test-Upstream", upstream)
	if !s.waits(id) {
		s.busy <- struct{}{}
		defer func() { <-s.busy }()
	}
	a, err := do(req)
	if err != nil {
		s.errorf("delivery: %v", err)
	}
	return a
}

// waits tells whether the delivery will most likely wait for forward_timeout, and keep no processor busy meanwhile.
func (s *story) waits(id string) bool {
	return id == s.id && !s.stalls && slices.ContainsFunc(s.hop.faults, func(f fault.Fault) bool {
		return f.Action == fault.Stall || f.Action == fault.Vanish
	})
}

// expect compares what matters of an answer. after is its Retry-After, or "lease" for what is left of one.
func (s *story) expect(what string, got answer, status int, code string, duplicate bool, after string) {
	if got.Status != status || got.Code != code || got.Duplicate != duplicate || got.Header.Get("Retry-After") != after && after != "lease" {
		s.errorf("%s: got %d %q duplicate=%v Retry-After %q, want %d %q duplicate=%v %q; body %.100q",
			what, got.Status, got.Code, got.Duplicate, got.Header.Get("Retry-After"), status, code, duplicate, after, got.Body)
	}
	if after == "lease" {
		if rest, err := strconv.Atoi(got.Header.Get("Retry-After")); err != nil || rest < 1 || rest > leaseSeconds {
			s.errorf("%s: Retry-After %q, want the rest of a lease", what, got.Header.Get("Retry-After"))
		}
	}
}

// until sends the event until it gets another answer than 503 or the time to come back is not a lease's any more.
func (s *story) until() (a answer) {
	for end := time.Now().Add(proc.Patience); time.Now().Before(end); {
		a = s.deliver(s.id, s.proxy.Addr)
		after, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != http.StatusServiceUnavailable || err != nil || after > leaseSeconds {
			return a
		}
		<-time.After(time.Duration(after) * time.Second)
	}
	s.errorf("no answer but %d %q", a.Status, a.Code)
	return a
}

// attempts are the requests of the event that the app has had whole.
func (s *story) attempts() []app.Request {
	return slices.DeleteFunc(s.app.Requests(), func(r app.Request) bool { return r.Header.Get("Webhook-Gate-Event") != s.id })
}

// once checks that no attempt has gone over the network twice, and that each has a token of its own.
func (s *story) once() {
	attempts, tokens := map[string]bool{}, map[string]bool{}
	for _, request := range s.proxy.Requests() {
		head, _, _ := strings.Cut(string(request), "\r\n\r\n")
		if !strings.Contains(head, "\r\nWebhook-Gate-Event: "+s.id+"\r\n") {
			continue
		}
		for name, seen := range map[string]map[string]bool{"Webhook-Gate-Attempt": attempts, "Webhook-Gate-Token": tokens} {
			_, rest, _ := strings.Cut(head, "\r\n"+name+": ")
			value, _, _ := strings.Cut(rest, "\r\n")
			if seen[value] || value == "" {
				s.errorf("%s %q came over the network twice, or is none", name, value)
			}
			seen[value] = true
			if name == "Webhook-Gate-Token" && strings.Contains(s.log, value) {
				s.errorf("a token is in the log")
			}
		}
	}
}
