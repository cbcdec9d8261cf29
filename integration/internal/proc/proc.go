// Package proc runs real processes for the integration tests: it starts them, waits for lines of their logs,
// ends them by their own id, and keeps what they wrote.
package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience bounds every wait for a process. It is a bound for machines that are busy, not a measure.
const Patience = 60 * time.Second

// Process is a started process.
type Process struct {
	tb  testing.TB
	cmd *exec.Cmd

	mu      sync.Mutex
	changed *sync.Cond
	lines   []string
	ended   bool
	err     error
}

// Start starts exe and reads both of its outputs. The process is ended with the test.
func Start(tb testing.TB, dir, exe string, args ...string) *Process {
	tb.Helper()
	p := &Process{tb: tb, cmd: exec.Command(exe, args...)}
	p.changed = sync.NewCond(&p.mu)
	p.cmd.Dir = dir
	// A home of its own: nothing of the machine's Caddy is read or written.
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	w.Close()
	go p.read(r)
	tb.Cleanup(p.end)
	return p
}

// read takes the output until the process has closed it, then the process's end.
func (p *Process) read(r io.ReadCloser) {
	defer r.Close()
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, scan.Text())
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	if err == nil {
		err = errors.New("exit status 0")
	}
	p.ended, p.err = true, err
	p.changed.Broadcast()
	p.mu.Unlock()
}

func (p *Process) end() {
	p.Kill()
	if p.tb.Failed() {
		p.tb.Logf("output of %s:\n%s", filepath.Base(p.cmd.Path), p.Output())
	}
}

// wait waits until done, looking again whenever the process wrote or ended.
func (p *Process) wait(what string, done func() bool) error {
	timer := time.AfterFunc(Patience, func() {
		p.mu.Lock()
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	end := time.Now().Add(Patience)
	p.mu.Lock()
	defer p.mu.Unlock()
	for !done() {
		if p.ended {
			return fmt.Errorf("process ended (%w) while waiting for %s", p.err, what)
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("no %s within %s", what, Patience)
		}
		p.changed.Wait()
	}
	return nil
}

// WaitLine waits for a line that contains text and gives it.
func (p *Process) WaitLine(text string) string {
	p.tb.Helper()
	var found string
	err := p.wait("line with "+text, func() bool {
		for _, line := range p.lines {
			if strings.Contains(line, text) {
				found = line
				return true
			}
		}
		return false
	})
	if err != nil {
		p.tb.Fatalf("%v; output:\n%s", err, p.Output())
	}
	return found
}

// WaitExit waits until the process has ended by itself and gives its exit code.
func (p *Process) WaitExit() int {
	p.tb.Helper()
	if err := p.wait("exit", func() bool { return p.ended }); err != nil {
		p.tb.Fatalf("%v; output:\n%s", err, p.Output())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Output gives all lines so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// Stop asks the process to end (SIGTERM), waits for it and gives its exit code.
func (p *Process) Stop() int {
	p.tb.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.WaitExit()
}

// Signal sends a signal and does not wait.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process at once (SIGKILL) and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.wait("exit", func() bool { return p.ended })
}

// FreeAddr gives an address on the loopback interface that nobody listens on.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
