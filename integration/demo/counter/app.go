package counter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// maxBody bounds what the app reads, in bytes; the gate in front allows less.
const maxBody = 64 << 10

// App answers webhooks and, apart from them, its control requests.
type App struct {
	store    *Store
	faults   faults
	requests atomic.Int64
	working  atomic.Int64
}

// NewApp makes an app on an open store.
func NewApp(store *Store) *App { return &App{store: store} }

// Stats is what the app has seen of its webhook listener.
type Stats struct {
	Requests int64 `json:"requests"` // received, whatever became of them
	Working  int64 `json:"working"`  // being worked on now
}

// Result is the app's answer to an event.
type Result struct {
	EventID string `json:"event_id"`
	Total   int64  `json:"total"`
}

type increment struct {
	EventID string `json:"event_id"`
	Kind    string `json:"kind"`
	Value   int64  `json:"value"`
}

// Webhooks handles POST /webhook.
func (a *App) Webhooks() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhook", a.receive)
	return mux
}

// Control handles POST /faults, which arms a fault, and GET /stats. It belongs on a listener that no sender
// reaches.
func (a *App) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /faults", a.armFault)
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, Stats{Requests: a.requests.Load(), Working: a.working.Load()})
	})
	return mux
}

func (a *App) receive(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	a.working.Add(1)
	defer a.working.Add(-1)
	var event increment
	if err := readJSON(w, r, &event); err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	if event.EventID == "" || event.Kind != "increment" || event.Value <= 0 {
		writeError(w, http.StatusUnprocessableEntity, errors.New("not an increment"))
		return
	}
	fault := a.faults.take(event.EventID)
	if fault.Fault == FailBeforeCommit {
		writeError(w, http.StatusInternalServerError, errors.New("failed before the commit, as it was told to"))
		return
	}
	if fault.Fault == Slow {
		time.Sleep(fault.delay()) // the work that this stands for does not end with the connection either
	}
	// Whoever sent the request may be gone by now; an effect that has begun is finished.
	total, err := a.store.Apply(context.WithoutCancel(r.Context()), event.EventID, event.Value, r.Header.Get("Webhook-Gate-Token"))
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	if fault.Fault == DropAfterCommit {
		drop(w)
		return
	}
	writeJSON(w, http.StatusOK, Result{EventID: event.EventID, Total: total})
}

// drop closes the connection as a crash would: without a byte of an answer.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close()
}

func (a *App) armFault(w http.ResponseWriter, r *http.Request) {
	var fault Fault
	err := readJSON(w, r, &fault)
	if err == nil {
		err = fault.check()
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	a.faults.arm(fault)
	w.WriteHeader(http.StatusNoContent)
}

func readJSON(w http.ResponseWriter, r *http.Request, to any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, to)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"error": err.Error()})
}
