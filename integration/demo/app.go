package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/einlass/einlass/integration/demo/counter"
)

const appReady = 20 * time.Second

// app is the counter's process and its control listener.
type app struct {
	process *process
	alive   io.Closer // the app ends when this is closed, also because we have died
	ready   counter.Ready
	client  *http.Client
}

// startApp starts the app by the command line `command... --db <file>` and waits for its ready line.
func startApp(ctx context.Context, command []string, dir string) (*app, error) {
	args := append(append([]string{}, command[1:]...), "--db", counterFile(dir), "--until-eof")
	cmd := exec.Command(command[0], args...) //nolint:gosec,noctx // our own binary; it is stopped by terminate, not by ctx
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the app: %w", err)
	}
	// A pipe of our own: the one of exec is closed as soon as the process ends, whether it was read or not.
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the app: %w", err)
	}
	defer func() { _ = reader.Close() }()
	cmd.Stdout = writer
	process, err := startProcess("the app", cmd, filepath.Join(dir, "app.log"))
	_ = writer.Close()
	if err != nil {
		return nil, err
	}
	a := &app{process: process, alive: alive, client: &http.Client{Timeout: 10 * time.Second}}
	if a.ready, err = readReady(ctx, reader); err != nil {
		if process.hasEnded() {
			err = process.dead()
		}
		_ = a.stop()
		return nil, fmt.Errorf("start the app: %w", err)
	}
	return a, nil
}

func counterFile(dir string) string { return filepath.Join(dir, "counter.db") }

func readReady(ctx context.Context, from *os.File) (counter.Ready, error) {
	// A deadline in the past ends the read when ctx ends first.
	stop := context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Now()) })
	defer stop()
	if err := from.SetReadDeadline(time.Now().Add(appReady)); err != nil {
		return counter.Ready{}, err
	}
	var ready counter.Ready
	if err := json.NewDecoder(from).Decode(&ready); err != nil {
		return counter.Ready{}, fmt.Errorf("read its ready line: %w", err)
	}
	return ready, nil
}

func (a *app) stop() error {
	_ = a.alive.Close()
	return a.process.terminate()
}

// arm arms a fault for the next request that carries the event.
func (a *app) arm(ctx context.Context, fault counter.Fault) error {
	body, err := json.Marshal(fault)
	if err != nil {
		return err
	}
	return a.control(ctx, http.MethodPost, "/faults", body, nil)
}

func (a *app) stats(ctx context.Context) (stats counter.Stats, err error) {
	err = a.control(ctx, http.MethodGet, "/stats", nil, &stats)
	return stats, err
}

func (a *app) control(ctx context.Context, method, path string, body []byte, to any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+a.ready.Control+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("the app's control listener: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the app's control listener answers %s", resp.Status)
	}
	if to == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(to)
}
