package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
)

// maxBody bounds what is read of a request, in bytes.
const maxBody = 64 << 10

type app struct {
	level  int
	fence  bool
	store  *store
	client *http.Client // for callbacks

	mu      sync.Mutex
	working map[event]int // requests that are worked on
}

// event is what the gate calls by these two names.
type event struct{ source, id string }

// attempt is what the gate says of a request.
type attempt struct {
	event
	token   string // names the attempt; a later one of the same event has a greater text
	confirm string // URL; empty without `confirm callback`
	number  string
	inDoubt string
}

func attemptOf(h http.Header) attempt {
	return attempt{
		event:   event{h.Get("Webhook-Gate-Source"), h.Get("Webhook-Gate-Event")},
		token:   h.Get("Webhook-Gate-Token"),
		confirm: h.Get("Webhook-Gate-Confirm"),
		number:  h.Get("Webhook-Gate-Attempt"),
		inDoubt: h.Get("Webhook-Gate-In-Doubt"),
	}
}

// receipt is what became of an event: the row, the callback and the answer to the outcome question are all this.
type receipt struct {
	Outcome     string `json:"outcome"` // committed, aborted, rejected; empty: nothing can be said
	Status      int    `json:"status"`
	ContentType string `json:"content_type"`
	Body        string `json:"body"`
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /hook":
		a.hook(w, r)
	case "GET /webhook-outcome":
		a.outcome(w, r)
	case "GET /counter":
		a.counter(w, r)
	default:
		http.NotFound(w, r)
	}
}

// hook takes one attempt.
func (a *app) hook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest) // so it is not the event, and decides nothing
		return
	}
	at := attemptOf(r.Header)
	if a.level >= 2 && (at.source == "" || at.id == "") {
		http.Error(w, "this did not come through the gate", http.StatusBadRequest)
		return
	}
	defer a.begin(at.event)()
	ctx := context.WithoutCancel(r.Context()) // what has begun is finished, also if the gate is gone by now
	rec, err := a.store.once(ctx, at, func(tx *sql.Tx) (receipt, error) { return add(ctx, tx, at, body) })
	if err != nil {
		log.Printf("event %q: %v", at.id, err)
		rec = a.failed(ctx, at)
	}
	if a.level >= 1 {
		a.confirm(at, rec)
		if rec.Outcome != "" {
			w.Header().Set("Webhook-Gate-Outcome", rec.Outcome)
		}
	}
	w.Header().Set("Content-Type", rec.ContentType)
	w.WriteHeader(rec.Status)
	_, _ = io.WriteString(w, rec.Body)
}

// add is the work: it adds the amount, or refuses the event for good.
func add(ctx context.Context, tx *sql.Tx, at attempt, body []byte) (receipt, error) {
	if len(body) > maxBody {
		return receipt{"rejected", http.StatusRequestEntityTooLarge, "text/plain", "the event is too large"}, nil
	}
	amount, ok := amountIn(body)
	if !ok {
		return receipt{"rejected", http.StatusUnprocessableEntity, "text/plain", "amount must be a number from 1 to 1000000"}, nil
	}
	total, err := addEffect(ctx, tx, at, amount)
	return receipt{"committed", http.StatusOK, "application/json", fmt.Sprintf(`{"total":%d}`, total)}, err
}

func amountIn(body []byte) (amount int64, ok bool) {
	var in struct{ Amount int64 }
	err := json.Unmarshal(body, &in)
	return in.Amount, err == nil && in.Amount >= 1 && in.Amount <= 1e6
}

// failed is the answer after a failure of any kind. Only the row tells what became of the event: the same attempt may
// have come twice, and the other one may have committed. Without a look at the row nothing is said.
func (a *app) failed(ctx context.Context, at attempt) receipt {
	again := receipt{Status: http.StatusServiceUnavailable, ContentType: "text/plain", Body: "try again"}
	if a.level < 2 {
		return again
	}
	rec, found, err := a.store.lookUp(ctx, at)
	switch {
	case err != nil:
		return again
	case found:
		return rec
	}
	again.Outcome = "aborted"
	return again
}

// outcome answers the outcome question. 404 is "I know nothing of it": mind that a wrong path says the same.
func (a *app) outcome(w http.ResponseWriter, r *http.Request) {
	if a.level < 3 {
		http.Error(w, "this app cannot tell", http.StatusNotImplemented)
		return
	}
	query := r.URL.Query()
	at := attempt{event: event{query.Get("source"), query.Get("event")}, token: r.Header.Get("Webhook-Gate-Token")}
	unknown, look := http.StatusNotFound, a.store.lookUp
	if a.worksOn(at.event) { // asked before the look at the row: what ends in between is in the row
		unknown = http.StatusAccepted
	} else if a.fence && at.token != "" {
		unknown, look = http.StatusGone, a.store.fence
	}
	rec, found, err := look(r.Context(), at)
	switch {
	case err != nil:
		log.Printf("outcome of event %q: %v", at.id, err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case !found:
		w.WriteHeader(unknown)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(rec)
	}
}

func (a *app) counter(w http.ResponseWriter, r *http.Request) {
	total, err := a.store.total(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(w, "%d\n", total)
}

// begin notes that an event is worked on until the returned function is called.
func (a *app) begin(e event) (end func()) {
	a.count(e, 1)
	return func() { a.count(e, -1) }
}

func (a *app) count(e event, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.working == nil {
		a.working = map[event]int{}
	}
	if a.working[e] += by; a.working[e] == 0 {
		delete(a.working, e)
	}
}

func (a *app) worksOn(e event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.working[e] > 0
}
