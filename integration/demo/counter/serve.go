package counter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Ready is the one line, in JSON, that a running app prints first: where it listens.
type Ready struct {
	Webhook string `json:"webhook"` // host:port
	Control string `json:"control"` // host:port
}

// stopWithin is how long running requests get when the app is told to stop.
const stopWithin = 3 * time.Second

// Serve runs the app on the file at path until ctx ends, on two free ports of 127.0.0.1. It writes the ready
// line to out once both listen.
func Serve(ctx context.Context, path string, out io.Writer) error {
	store, err := Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	app := NewApp(store)
	webhook, control, err := listenTwice()
	if err != nil {
		return err
	}
	servers := []*http.Server{newServer(app.Webhooks()), newServer(app.Control())}
	ended := make(chan error, len(servers))
	for i, listener := range []net.Listener{webhook, control} {
		go func() { ended <- servers[i].Serve(listener) }()
	}
	line, err := json.Marshal(Ready{Webhook: webhook.Addr().String(), Control: control.Addr().String()})
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", line)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			ended <- nil // it is still counted below
		}
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	for _, server := range servers {
		err = errors.Join(err, server.Shutdown(stop))
	}
	for range servers {
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func listenTwice() (webhook, control net.Listener, err error) {
	if webhook, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	if control, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		_ = webhook.Close()
		return nil, nil, fmt.Errorf("listen for control: %w", err)
	}
	return webhook, control, nil
}

func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
}
