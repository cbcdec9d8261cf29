package demo

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	content "github.com/einlass/einlass/dedup/event"
	"github.com/einlass/einlass/verifier"
)

func newTestSender(t *testing.T) *sender {
	t.Helper()
	s, err := newSender(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// isAuthentic asks the scheme's verifier, as the gate does.
func isAuthentic(t *testing.T, s *sender, d delivery) bool {
	t.Helper()
	v, ok := s.signer.(verifier.Verifier)
	if !ok {
		t.Fatalf("%T does not verify", s.signer)
	}
	check, err := v.Begin(verifier.Request{Method: d.method, Header: d.header, Now: time.Now()})
	if err != nil {
		return false
	}
	_, _ = check.Write(d.body)
	_, err = check.Finish(d.body)
	return err == nil
}

func newTestDelivery(t *testing.T, s *sender) (delivery, *event) {
	t.Helper()
	l := &lab{sender: s}
	e := l.newEvent(3)
	d, err := s.newDelivery(e.body)
	if err != nil {
		t.Fatal(err)
	}
	return d, e
}

func TestSignatureByHandIsTheVerifiersOwn(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	d, _ := newTestDelivery(t, s)
	signed := d.header.Get(headerSignature)
	d.header.Del(headerSignature)
	d.signByHand(secret)
	if got := d.header.Get(headerSignature); got != signed {
		t.Errorf("by hand %s, by the package %s", got, signed)
	}
	if !isAuthentic(t, s, d) {
		t.Error("it is refused")
	}
}

func TestForgeriesAreForged(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	for _, r := range forgeries() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			good, e := newTestDelivery(t, s)
			if !isAuthentic(t, s, good) {
				t.Fatal("the good one is refused")
			}
			if isAuthentic(t, s, r.make(good, e)) {
				t.Error("it is accepted")
			}
		})
	}
}

func TestMalformedDeliveriesAreAuthenticAndBreakTheContract(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	contract, err := content.CompileContractJSON("event.schema.json", []byte(eventSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range malformed() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			good, e := newTestDelivery(t, s)
			if err := contract.Check(content.NewDocument(nil, good.body)); err != nil {
				t.Fatalf("the good one: %v", err)
			}
			bad := r.make(good, e)
			if !isAuthentic(t, s, bad) {
				t.Error("its signature is wrong, so that nothing else is judged")
			}
			err := contract.Check(content.NewDocument(nil, bad.body))
			if err == nil || errors.Is(err, content.ErrInvalidJSON) != (r.code == "invalid_json") {
				t.Errorf("expected %s, got %v", r.code, err)
			}
		})
	}
}

func TestOutsizedDeliveriesAreAuthentic(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	for _, r := range outsized() {
		good, e := newTestDelivery(t, s)
		bad := r.make(good, e)
		if !isAuthentic(t, s, bad) {
			t.Errorf("%s: its signature is wrong, so that nothing else is judged", r.name)
		}
		if r.status == http.StatusRequestEntityTooLarge && len(bad.body) != limit+1 {
			t.Errorf("%s: it has %d bytes", r.name, len(bad.body))
		}
	}
}

func TestAnswerIsReadAndDescribed(t *testing.T) {
	t.Parallel()
	problem := http.Header{"Content-Type": {"application/problem+json"}}
	asking := problem.Clone()
	asking.Set("Retry-After", "6")
	tests := []struct {
		got   answer
		text  string
		code  string
		total int64
		wait  time.Duration
	}{
		{answer{status: 200, body: []byte(`{"event_id":"evt-1","total":0}`)}, "200 total 0", "", 0, 0},
		{answer{status: 200, header: http.Header{"Webhook-Gate-Receipt": {"duplicate"}}, body: []byte(`{"total":7}`)}, "200 total 7, duplicate", "", 7, 0},
		{answer{status: 409, header: problem, body: []byte(`{"code":"event_conflict"}`)}, "409 event_conflict", "event_conflict", -1, 0},
		{answer{status: 503, header: asking, body: []byte(`{"code":"in_doubt"}`)}, "503 in_doubt, retry after 6 s", "in_doubt", -1, 6 * time.Second},
		{answer{status: 502, body: []byte(`{"code":"not_a_problem"}`)}, "502", "", -1, 0},
		{answer{status: 503, header: http.Header{"Retry-After": {"soon"}}}, "503, retry after soon s", "", -1, 0},
		{answer{err: errors.New("reset")}, "no answer", "", -1, 0},
	}
	for _, tt := range tests {
		if tt.got.String() != tt.text || tt.got.code() != tt.code || tt.got.total() != tt.total || tt.got.retryAfter() != tt.wait {
			t.Errorf("got %q, %q, %d, %v; want %q", tt.got, tt.got.code(), tt.got.total(), tt.got.retryAfter(), tt.text)
		}
	}
}

func TestBodyIsFilledUpToTheByte(t *testing.T) {
	t.Parallel()
	if got := padded([]byte(`{}`), 10); string(got) != `{}`+strings.Repeat(" ", 8) {
		t.Errorf("got %q", got)
	}
}
