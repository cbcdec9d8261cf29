package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"time"
)

// confirm tells the gate what became of the event, so that it knows also if the answer gets lost. It comes after the
// commit and is never in its way: the answer waits a second for it at most, and if it fails the row still stands.
func (a *app) confirm(at attempt, rec receipt) {
	if at.confirm == "" || rec.Outcome == "" {
		return
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		a.tell(at, rec)
	}()
	select {
	case <-told:
	case <-time.After(time.Second):
	}
}

// tell tries a few times, with longer and longer pauses. 409 is for a person: another receipt was stored before
// (receipt_differs), or the gate was told that this attempt will never commit (attempt_closed).
func (a *app) tell(at attempt, rec receipt) {
	said := ""
	for _, pause := range []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		time.Sleep(pause)
		status, err := a.post(at, rec)
		if err == nil && status == http.StatusOK {
			return
		}
		if said = http.StatusText(status); err != nil {
			said = err.Error()
		}
		if status != 0 && status < 500 {
			break
		}
	}
	log.Printf("event %q: the gate could not be told what became of it: %s", at.id, said)
}

func (a *app) post(at attempt, rec receipt) (status int, err error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, at.confirm, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Gate-Token", at.token)
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	state, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err == nil && resp.StatusCode == http.StatusOK && !bytes.Contains(state, []byte(`"state"`)) {
		err = errors.New("something else answered: the URL does not lead to the gate")
	}
	return resp.StatusCode, err
}

// newClient is a client that gives up soon, and sends the token to the gate only: no redirect, no proxy.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       2 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
