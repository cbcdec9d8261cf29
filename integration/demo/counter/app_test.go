package counter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

type served struct {
	webhook, control *httptest.Server
	ledger           *Ledger
}

func serve(t *testing.T) served {
	t.Helper()
	store, ledger := openStore(t)
	app := NewApp(store)
	s := served{httptest.NewServer(app.Webhooks()), httptest.NewServer(app.Control()), ledger}
	t.Cleanup(s.webhook.Close)
	t.Cleanup(s.control.Close)
	return s
}

// post gives status and body; status 0 means that no answer came.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Webhook-Gate-Token", "t0ken")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(answer))
}

func TestAppAnswersAKnownEventFromItsRow(t *testing.T) {
	t.Parallel()
	s := serve(t)
	send := func(body, want string) {
		t.Helper()
		if status, got := post(t, s.webhook.URL+"/webhook", body); status != http.StatusOK || got != want {
			t.Errorf("got %d %s, want %s", status, got, want)
		}
	}
	send(`{"event_id":"evt-a","kind":"increment","value":5}`, `{"event_id":"evt-a","total":5}`)
	send(`{"event_id":"evt-b","kind":"increment","value":2}`, `{"event_id":"evt-b","total":7}`)
	send(`{"event_id":"evt-a","kind":"increment","value":5}`, `{"event_id":"evt-a","total":5}`)
	checkTotal(t, s.ledger, 7)
	if o, _, err := s.ledger.Outcome(t.Context(), "evt-a"); o.Token != "t0ken" || err != nil {
		t.Errorf("the row's token is %q, %v", o.Token, err)
	}
}

func TestAppRefusesWhatIsNoIncrement(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for body, want := range map[string]int{
		``:   http.StatusBadRequest,
		`{}`: http.StatusUnprocessableEntity,
		`{"event_id":"evt-a","kind":"increment","value":"5"}`: http.StatusBadRequest,
		`{"event_id":"evt-a","kind":"increment","value":0}`:   http.StatusUnprocessableEntity,
		`{"event_id":"evt-a","kind":"decrement","value":5}`:   http.StatusUnprocessableEntity,
		`{"kind":"increment","value":5}`:                      http.StatusUnprocessableEntity,
		strings.Repeat(" ", maxBody+1):                        http.StatusBadRequest,
	} {
		if status, answer := post(t, s.webhook.URL+"/webhook", body); status != want {
			t.Errorf("%.60s: got %d %s, want %d", body, status, answer, want)
		}
	}
	checkTotal(t, s.ledger, 0)
}

func TestFaultsStrikeOnceAndInOrder(t *testing.T) {
	t.Parallel()
	const event = `{"event_id":"evt-a","kind":"increment","value":5}`
	s := serve(t)
	for _, fault := range []string{
		`{"event_id":"evt-a","fault":"fail_before_commit"}`,
		`{"event_id":"evt-a","fault":"drop_after_commit"}`,
		`{"event_id":"evt-a","fault":"slow_ms","slow_ms":1}`,
		`{"event_id":"evt-other","fault":"fail_before_commit"}`,
	} {
		if status, answer := post(t, s.control.URL+"/faults", fault); status != http.StatusNoContent {
			t.Fatalf("%s: got %d %s", fault, status, answer)
		}
	}
	for i, want := range []struct {
		status int
		total  int64
	}{
		{http.StatusInternalServerError, 0}, // nothing is applied
		{0, 5},                              // it is, and nobody is told
		{http.StatusOK, 5},                  // slow, from the row
		{http.StatusOK, 5},                  // nothing is armed any more
	} {
		if status, answer := post(t, s.webhook.URL+"/webhook", event); status != want.status {
			t.Errorf("request %d: got %d %s, want %d", i, status, answer, want.status)
		}
		checkTotal(t, s.ledger, want.total)
	}
	resp, err := http.Get(s.control.URL + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var stats Stats
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil || stats != (Stats{Requests: 4}) {
		t.Errorf("got %+v, %v", stats, err)
	}
}

func TestFaultsThatDoNotExistAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, fault := range []string{
		`x`, `{}`, `{"fault":"fail_before_commit"}`, `{"event_id":"evt-a","fault":"explode"}`,
		`{"event_id":"evt-a","fault":"slow_ms"}`, `{"event_id":"evt-a","fault":"slow_ms","slow_ms":60001}`,
	} {
		if status, answer := post(t, s.control.URL+"/faults", fault); status != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", fault, status, answer)
		}
	}
}

func TestServeSaysWhereAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, filepath.Join(t.TempDir(), "counter.db"), writer) }()
	var ready Ready
	if err := json.NewDecoder(reader).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	status, answer := post(t, "http://"+ready.Webhook+"/webhook", `{"event_id":"evt-a","kind":"increment","value":1}`)
	if status != http.StatusOK {
		t.Errorf("got %d %s", status, answer)
	}
	if status, _ := post(t, "http://"+ready.Control+"/webhook", `{}`); status != http.StatusNotFound {
		t.Errorf("the control listener takes webhooks: %d", status)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if status, _ := post(t, "http://"+ready.Webhook+"/webhook", `{}`); status != 0 {
		t.Errorf("it still answers: %d", status)
	}
}
