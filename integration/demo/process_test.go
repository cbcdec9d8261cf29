package demo

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, part string) (*process, *bufio.Reader) {
	t.Helper()
	command := self(t, part)
	cmd := exec.Command(command[0], command[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := startProcess("the child", cmd, filepath.Join(t.TempDir(), "child.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.kill() })
	return p, bufio.NewReader(out)
}

func TestProcessIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	p, out := start(t, "ignore")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if p.hasEnded() {
		t.Fatal("it has ended by itself")
	}
	if err := p.kill(); err != nil || !p.hasEnded() {
		t.Errorf("killed: %v, ended: %v", err, p.hasEnded())
	}
	if err := errors.Join(p.kill(), p.terminate()); err != nil {
		t.Errorf("ending what has ended: %v", err)
	}
}

func TestProcessThatEndsByItselfIsDescribed(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "fail")
	<-p.ended
	if err := p.dead(); !strings.Contains(err.Error(), "free lunch") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v", err)
	}
}

func TestProcessThatDoesNotExist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := startProcess("the child", exec.Command(filepath.Join(dir, "missing")), filepath.Join(dir, "log"))
	if err == nil || !strings.Contains(err.Error(), "start the child") {
		t.Errorf("got %v", err)
	}
}

func TestGateThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g, err := newGate("false", dir, "127.0.0.1:1", secret)
	if err != nil {
		t.Fatal(err)
	}
	g.exe, err = exec.LookPath("false")
	if err != nil {
		t.Skip("there is no `false` here")
	}
	if err := g.start(t.Context()); err == nil || !strings.Contains(err.Error(), "the gate ended by itself") {
		t.Errorf("got %v", err)
	}
	if err := g.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	never := func(context.Context) (bool, error) { return false, nil }
	if err := await(t.Context(), "a thing", time.Minute, func(context.Context) (bool, error) { return true, nil }); err != nil {
		t.Errorf("what is there: %v", err)
	}
	if err := await(t.Context(), "a thing", time.Millisecond, never); err == nil || err.Error() != "a thing: not within 1ms" {
		t.Errorf("what never comes: %v", err)
	}
	if err := await(t.Context(), "a thing", time.Minute, func(context.Context) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("what breaks: %v", err)
	}
	if err := await(canceled, "a thing", time.Minute, never); !errors.Is(err, context.Canceled) {
		t.Errorf("what nobody waits for: %v", err)
	}
}

func TestAppProcessTakesFaultsAndEndsWithItsParent(t *testing.T) {
	t.Parallel()
	a, err := startApp(t.Context(), self(t, "app"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.process.kill() })
	stats, err := a.stats(t.Context())
	if err != nil || stats.Requests != 0 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
	if err := a.control(t.Context(), "POST", "/faults", []byte(`{}`), nil); err == nil {
		t.Error("a fault without an event was armed")
	}
	if err := a.alive.Close(); err != nil { // as the end of the parent does
		t.Fatal(err)
	}
	<-a.process.ended
	if err := a.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestAppThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	if _, err := startApp(t.Context(), self(t, "fail"), t.TempDir()); err == nil || !strings.Contains(err.Error(), "start the app") {
		t.Errorf("got %v", err)
	}
}
