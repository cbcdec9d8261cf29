package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long a process gets between being asked to end and being killed.
const stopWithin = 10 * time.Second

// process is a child that is watched. It is stopped by its own pid and by nothing else.
type process struct {
	name  string
	log   string // file with its standard error
	cmd   *exec.Cmd
	ended chan struct{} // closed once it has ended and was waited for
}

// startProcess starts cmd with its standard error in the file log, which is appended to.
func startProcess(name string, cmd *exec.Cmd, log string) (*process, error) {
	stderr, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = stderr.Close() }() // the child has its own
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, log: log, cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	return p, nil
}

// terminate asks the process to end and waits for it; after stopWithin it is killed, which is an error.
func (p *process) terminate() error {
	if p.hasEnded() {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("stop %s: %w", p.name, err), p.kill()) // no such signal on this system
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s has not ended %v after it was asked to", p.name, stopWithin), p.kill())
	}
}

// kill ends the process at once (SIGKILL) and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// dead describes a process that ended though nobody asked it to, with the end of its log.
func (p *process) dead() error {
	return fmt.Errorf("%s ended by itself (%v); the end of %s:\n%s", p.name, p.cmd.ProcessState, p.log, tail(p.log))
}

// tailBytes is how much of a log is shown.
const tailBytes = 2000

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return strings.TrimSpace(string(text))
}

// pollEvery is the pace at which something outside of this process is looked at.
const pollEvery = 10 * time.Millisecond

// await looks until ready is true. what names it in the error after limit.
func await(ctx context.Context, what string, limit time.Duration, ready func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: not within %v", what, limit))
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		ok, err := ready(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
