package integration

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/fault"
)

// lost is a hop on which the app commits and its answer does not arrive.
func lost(name string) hop {
	return hop{name: name, faults: at(fault.Request, fault.Close), end: inDoubt, seen: 1}
}

// question is the text that only the outcome question about this event holds.
func (s *story) question() string { return "event=" + s.id + "&" }

// questionable is a story in which the outcome question meets a fault, and later does not.
func questionable(n *network, name string, f fault.Fault) *story {
	return &story{network: n, hop: lost(name), source: "doubtful", run: func(s *story) {
		if f.Answer != nil {
			answer := f.Answer(nil)
			f.Answer = fault.Instead(strings.ReplaceAll(string(answer), "EVENT", s.id))
		}
		n.questions.For(s.question(), f)
		s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_doubt", false, "lease")
		s.expect("asked in vain", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_doubt", false, "lease")
		s.asked()
		n.questions.For(s.question(), fault.Fault{})
		learned := s.until()
		if s.expect("asked again", learned, http.StatusCreated, "", true, ""); learned.Body != s.id+", attempt 1" {
			s.errorf("asked again: got %q", learned.Body)
		}
		s.repeated(learned, 1)
	}}
}

// asked checks that the question was put, with the token of the attempt, and that only in its header.
func (s *story) asked() {
	token := s.attempts()[0].Header.Get("Webhook-Gate-Token")
	asked := 0
	for _, head := range s.questions.Heads() {
		line, headers, _ := bytes.Cut(head, []byte("\r\n"))
		if !bytes.Contains(line, []byte(s.question())) {
			continue
		}
		asked++
		if bytes.Contains(line, []byte(token)) || !bytes.Contains(headers, []byte("\r\nWebhook-Gate-Token: "+token+"\r\n")) {
			s.errorf("asked with %q", head)
		}
	}
	if asked == 0 {
		s.errorf("the question was not put")
	}
}

// questions are the faults on the way of the outcome question. None of them moves anything.
func questions(n *network) []*story {
	var all []*story
	for how, action := range badEnds {
		all = append(all, questionable(n, "question "+how+" at its end", fault.Fault{At: fault.RequestHead, Action: action}))
		for where, place := range answered {
			all = append(all, questionable(n, "question "+how+" after "+where, fault.Fault{At: place, Action: action}))
		}
	}
	const json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
	for name, text := range map[string]string{
		"a page":                    json + "<html>" + marker,
		"nothing":                   json,
		"null":                      json + "null",
		"no outcome":                json + `{"status":201}`,
		"an outcome that is none":   json + `{"outcome":"` + marker + `"}`,
		"half of the JSON":          json + `{"outcome":"committed","status":201`,
		"two outcomes":              json + `{"outcome":"committed","outcome":"aborted"}`,
		"something behind the JSON": json + `{"outcome":"committed"} {"outcome":"aborted"}`,
		"a status as a text":        json + `{"outcome":"committed","status":"201"}`,
		"a redirect as a receipt":   json + `{"outcome":"committed","status":302}`,
		"a header in content_type":  json + `{"outcome":"committed","content_type":"a\r\nX-Evil: ` + marker + `"}`,
		"more than any receipt":     json + `{"outcome":"committed","body":"` + strings.Repeat("x", 17<<20) + `"}`,
		"a chunk without an end":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n17\r\n" + `{"outcome":"committed"}` + "\r\n",
		"headers without an end":    "HTTP/1.1 404 Not Found\r\n" + strings.Repeat("X-Nonsense: "+strings.Repeat(marker, 500)+"\r\n", 20),
		"another protocol":          "SSH-2.0-" + marker + "\r\n",
		"102, then nothing":         "HTTP/1.1 102 Processing\r\n\r\n",
		"101":                       "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + marker + "\r\n\r\n",
		"202":                       "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"204":                       "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
		"401":                       "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"502":                       "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	} {
		all = append(all, questionable(n, "question answered with "+name, fault.Fault{Answer: fault.Instead(text), Action: fault.Close}))
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		// Followed, it would lead to an answer.
		redirect := fmt.Sprintf("HTTP/1.1 %d Elsewhere\r\nLocation: http://%s/outcome?source=doubtful&event=EVENT\r\nContent-Length: 0\r\n\r\n", status, n.answers)
		all = append(all, questionable(n, fmt.Sprintf("question answered with %d", status), fault.Fault{Answer: fault.Instead(redirect)}))
	}
	return all
}

// unanswered is an event for which nobody can be asked: it is in doubt for as long as that lasts, and goes nowhere.
func unanswered(s *story) {
	s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_doubt", false, "lease")
	s.expect("after the lease", s.until(), http.StatusServiceUnavailable, "in_doubt", false, "41")
	if n := len(s.attempts()); n != 1 {
		s.errorf("the app had %d attempts, want 1", n)
	}
}

// fenced: the app has durably refused the attempt, so the next one is in no doubt.
func fenced(s *story) {
	s.questions.For(s.question(), fault.Fault{Answer: fault.Instead("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")})
	s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_doubt", false, "lease")
	s.again(s.deliver(s.id, s.proxy.Addr), "")
}

// confirming is an app that confirms, before its answer, with an outcome.
func confirming(outcome string, status int) func(*network) http.HandlerFunc {
	return func(n *network) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text := n.commits(r)
			if got := n.confirm(r.Header, outcome, status); got != http.StatusOK {
				n.t.Errorf("event %s: the callback was answered with %d", text, got)
			}
			app.Text(http.StatusCreated, text)(w, r)
		}
	}
}

func confirmation(outcome string, status int) string {
	return fmt.Sprintf(`{"outcome":%q,"status":%d,"content_type":"text/plain","body":"confirmed"}`, outcome, status)
}

// confirm sends the callback of the attempt with these headers and gives the gate's status.
func (n *network) confirm(attempt http.Header, outcome string, status int) int {
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, attempt.Get("Webhook-Gate-Confirm"), strings.NewReader(confirmation(outcome, status)))
	if err != nil {
		n.t.Error(err)
		return 0
	}
	req.Header.Set("Webhook-Gate-Token", attempt.Get("Webhook-Gate-Token"))
	a, err := do(req)
	if err != nil {
		n.t.Error(err)
	}
	return a.Status
}

// confirmed: what the callback said counts, whatever became of the answer.
func confirmed(status int) func(*story) {
	return func(s *story) {
		first := s.deliver(s.id, s.proxy.Addr)
		if s.expect("first delivery", first, status, "", false, ""); first.Body != "confirmed" {
			s.errorf("first delivery: got %q", first.Body)
		}
		s.repeated(first, 1)
	}
}

// abortedBy a callback: free at once, whatever became of the answer.
func abortedBy(s *story) {
	s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "temporary_processing_failure", false, "41")
	s.app.Script(confirming("committed", http.StatusAccepted)(s.network))
	a := s.deliver(s.id, s.proxy.Addr)
	s.expect("second attempt", a, http.StatusAccepted, "", false, "")
	if attempts := s.attempts(); len(attempts) != 2 || attempts[1].Header.Get("Webhook-Gate-In-Doubt") != "" {
		s.errorf("the app had %d attempts, the last in doubt or not", len(attempts))
	}
	s.repeated(a, 2)
}

// confirmedLate: in doubt, until the callback comes. Half a callback moves nothing.
func confirmedLate(s *story) {
	s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_doubt", false, "lease")
	attempt := s.attempts()[0].Header
	s.halfConfirm(attempt)
	s.expect("half confirmed", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_doubt", false, "lease")
	for range 2 {
		if got := s.confirm(attempt, "committed", http.StatusAccepted); got != http.StatusOK {
			s.errorf("the callback was answered with %d", got)
		}
	}
	a := s.deliver(s.id, s.proxy.Addr)
	if s.expect("confirmed", a, http.StatusAccepted, "", true, ""); a.Body != "confirmed" {
		s.errorf("confirmed: got %q", a.Body)
	}
	s.repeated(a, 1)
	if got := s.confirm(attempt, "rejected", http.StatusAccepted); got != http.StatusConflict {
		s.errorf("another callback was answered with %d", got)
	}
}

// halfConfirm breaks the callback off before its last byte, and waits until the gate has noticed.
func (s *story) halfConfirm(attempt http.Header) {
	at, err := url.Parse(attempt.Get("Webhook-Gate-Confirm"))
	if err != nil {
		s.errorf("%v", err)
		return
	}
	c, err := net.Dial("tcp", at.Host)
	if err != nil {
		s.errorf("%v", err)
		return
	}
	defer c.Close()
	body := confirmation("committed", http.StatusAccepted)
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nWebhook-Gate-Token: %s\r\nContent-Length: %d\r\n\r\n%s",
		at.RequestURI(), at.Host, attempt.Get("Webhook-Gate-Token"), len(body), body[:len(body)-1])
	_ = c.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(c)
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
		s.errorf("half a callback was answered with %.60q", answer)
	}
}

// late: the sender was answered before the app was, and the attempt went on.
func late(s *story) {
	s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_progress", false, "1")
	s.proxy.Release()
	a := s.until()
	if s.expect("next delivery", a, http.StatusCreated, "", true, ""); a.Body != s.id+", attempt 1" {
		s.errorf("next delivery: got %q", a.Body)
	}
	s.repeated(a, 1)
}

// neverAnswered: the sender was answered before forward_timeout was over.
func neverAnswered(s *story) {
	s.expect("first delivery", s.deliver(s.id, s.proxy.Addr), http.StatusServiceUnavailable, "in_progress", false, "1")
	s.again(s.until(), "true")
}

func TestACutAnswerIsLearnedByAskingOrByCallback(t *testing.T) {
	const callback = "confirm callback http://CALLBACKS\n in_doubt "
	n := startNetwork(t, map[string]string{
		"doubtful": times + "answer_within 2s\n outcome http://QUESTIONS/outcome",
		"nobody":   times + "outcome http://" + nobody + "/outcome",
		"callback": times + callback + "redeliver",
		"held":     times + callback + "hold",
		"late":     "answer_within 300ms\n in_doubt redeliver\n" + strings.Replace(times, "41s", "1s", 1),
	})
	stories := append(questions(n),
		&story{network: n, hop: lost("nobody to ask"), source: "nobody", run: unanswered},
		&story{network: n, hop: hop{name: "fenced", faults: at(fault.RequestBody, fault.Close)}, source: "doubtful", run: fenced},
	)
	for _, source := range []string{"callback", "held"} {
		stories = append(stories, &story{network: n, hop: lost("confirmed after the cut"), source: source, run: confirmedLate})
		for how, action := range badEnds {
			for where, place := range map[string]fault.Place{"request": fault.Request, "headers": fault.Head, "last byte but one": fault.LastByte, "answer": fault.Answer} {
				stories = append(stories, &story{network: n, source: source, run: confirmed(http.StatusAccepted), hop: hop{
					name: "confirmed, then " + how + " after the " + where, faults: at(place, action), app: confirming("committed", http.StatusAccepted),
				}})
			}
			stories = append(stories,
				&story{network: n, source: source, run: confirmed(http.StatusConflict), hop: hop{
					name: "rejected, then " + how, faults: at(fault.Request, action), app: confirming("rejected", http.StatusConflict),
				}},
				&story{network: n, source: source, run: abortedBy, hop: hop{
					name: "aborted, then " + how, faults: at(fault.Request, action), app: confirming("aborted", http.StatusOK),
				}})
		}
	}
	for where, place := range answered {
		stories = append(stories,
			&story{network: n, hop: hop{name: "delayed over answer_within after " + where, faults: at(place, fault.Stall)}, source: "late", run: late},
			&story{network: n, hop: hop{name: "stalled over answer_within after " + where, faults: at(place, fault.Stall)}, source: "late", run: neverAnswered})
	}
	tell(t, stories)
}
