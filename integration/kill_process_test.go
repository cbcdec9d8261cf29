package integration

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/proc"
)

// victim is a program that is started and killed many times. Its processes write to one file, one after the other.
type victim struct {
	t       testing.TB
	name    string
	log     string
	command func(armed string, process int) *exec.Cmd

	process int // counts them
	began   int64
	cmd     *exec.Cmd
	died    chan struct{} // closed when the process is gone
	err     error         // then: how
}

// mustStart is start in a test's own goroutine.
func (v *victim) mustStart(armed string) {
	v.t.Helper()
	if err := v.start(armed); err != nil {
		v.t.Fatal(err)
	}
}

// start starts the next process, armed to kill itself.
func (v *victim) start(armed string) error {
	v.process++
	file, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		v.began = info.Size()
	}
	fmt.Fprintf(file, "\nstart %d %s\n", v.process, armed)
	cmd := v.command(armed, v.process)
	cmd.Stdout, cmd.Stderr = file, file // the files themselves: what was written is there whenever the process dies
	if err := cmd.Start(); err != nil {
		return err
	}
	died := make(chan struct{})
	v.cmd, v.died = cmd, died
	go func() {
		v.err = cmd.Wait()
		close(died)
	}()
	return nil
}

// end waits for the process's end, and kills it when time is over. struck tells whether it killed itself. Any other
// end is an error.
func (v *victim) end(over <-chan struct{}, patience time.Duration) (struck bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	struck = true
	select {
	case <-v.died:
	case <-over:
		struck = false
	case <-timer.C:
		struck = false
	}
	if !struck {
		_ = v.cmd.Process.Kill()
		<-v.died
	}
	if status, ok := v.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return struck, nil
	}
	return false, fmt.Errorf("%s ended by itself: %w\n%s", v.name, v.err, tail(v.output(), 40))
}

// mustDie waits until the process has killed itself.
func (v *victim) mustDie(where string) {
	v.t.Helper()
	if struck, err := v.end(nil, proc.Patience); err != nil || !struck {
		v.t.Fatalf("%s was not killed at %s: %v\n%s", v.name, where, err, tail(v.output(), 40))
	}
}

// stop kills the process, if there is one.
func (v *victim) stop() {
	if v.cmd != nil {
		_ = v.cmd.Process.Kill()
		<-v.died
	}
}

// output is what the last process wrote.
func (v *victim) output() string {
	data, err := os.ReadFile(v.log)
	if err != nil {
		return err.Error()
	}
	return string(data[min(v.began, int64(len(data))):])
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// site is the config of a gate that is killed.
type site struct {
	t    testing.TB
	dir  string
	addr string
}

// newSite writes the config. An attempt is given up after a second, and its event is free after six.
func newSite(t testing.TB, app, words string) *site {
	t.Helper()
	s := &site{t: t, dir: t.ArtifactDir(), addr: lowAddr(t)}
	callback := lowAddr(t)
	words = strings.NewReplacer("CALLBACK", callback, "APP", app).Replace(words)
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	webhook_gate {
		store bolt %s
	}
}
http://%s {
	bind 127.0.0.1
	webhook_gate /hook github "%s" {
		forward_timeout 1s
		lease 6s
		answer_within 2s
		wait 500ms
		%s
	}
	reverse_proxy %s {
		header_up Gate-Process {env.GATE_PROCESS}
	}
}
http://%s {
	bind 127.0.0.1
	webhook_gate_callback
}
`, s.store(), s.addr, secret, words, app, callback)
	if err := os.WriteFile(s.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) config() string { return filepath.Join(s.dir, "Caddyfile") }
func (s *site) store() string  { return filepath.Join(s.dir, "receipts.db") }
func (s *site) url() string    { return "http://" + s.addr + "/hook" }

// gate is the site's gate, not yet started.
func (s *site) gate(exe string) *victim {
	v := &victim{t: s.t, name: "the gate", log: filepath.Join(s.dir, "gate.log"), command: func(armed string, process int) *exec.Cmd {
		cmd := exec.Command(exe, "run", "--config", s.config(), "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir,
			"EINLASS_FAILPOINT="+armed, fmt.Sprint("GATE_PROCESS=", process))
		return cmd
	}}
	s.t.Cleanup(v.stop)
	return v
}

// lowAddr is a free address below the ports that outgoing connections get: while a process is down, nobody else may
// come to have its port.
func lowAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 12000+rand.IntN(20000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}
