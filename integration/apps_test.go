package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/einlass/einlass/integration/internal/proc"
)

// The example apps of apps/, as a user runs them: each a process of its own behind the real gate.

// shown is one of the example apps.
type shown struct {
	name    string
	crash   string // the variable that lets it crash
	sqlite  bool
	command func(t *testing.T) []string
}

var shownApps = []shown{
	{"go", "EINLASS_APP_CRASH", true, func(t *testing.T) []string {
		path, err := goApp()
		if err != nil {
			t.Fatal(err)
		}
		return []string{path}
	}},
	{"python", "CRASH_AT", true, func(t *testing.T) []string {
		return []string{interpreter(t, "python3", "-c", "import sys; print(sys.executable)"), "apps/python/app.py"}
	}},
	{"node", "CRASH_AT", false, func(t *testing.T) []string {
		return []string{interpreter(t, "node", "-p", "process.execPath"), "apps/node/app.mjs"}
	}},
}

var goApp = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(exe), "app-go")
	out, err := exec.Command("go", "build", "-o", path, "./apps/go").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building apps/go: %w\n%s", err, out)
	}
	return path, nil
})

// interpreter finds a program behind whatever stands for it in PATH. Where it is missing, only CI insists on it.
func interpreter(t *testing.T, name string, where ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, where...).Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	if os.Getenv("EINLASS_CI") != "" {
		t.Fatalf("%s does not run: %v", name, err)
	}
	t.Skipf("%s does not run here: %v", name, err)
	return ""
}

// stage is one example app with its file, and the gate in front of it.
type stage struct {
	shown
	t    *testing.T
	dir  string
	addr string
	args []string
	app  *proc.Process
	gate *gate
}

// newStage starts the app, which crashes at a point if one is named, and no gate.
func newStage(t *testing.T, app shown, crash string, args ...string) *stage {
	t.Helper()
	command := app.command(t)
	for i, arg := range command {
		if i > 0 {
			command[i], _ = filepath.Abs(arg)
		}
	}
	s := &stage{shown: app, t: t, dir: t.TempDir(), addr: proc.FreeAddr(t)}
	s.args = append(command, append([]string{"--listen", s.addr, "--db", filepath.Join(s.dir, "counter")}, args...)...)
	s.start(crash)
	return s
}

// behindGate is newStage with a gate.
func behindGate(t *testing.T, app shown, crash string, args ...string) *stage {
	t.Helper()
	s := newStage(t, app, crash, args...)
	s.gate = &gate{t: t, dir: t.TempDir()}
	s.gate.store, s.gate.config = filepath.Join(s.gate.dir, "receipts.db"), filepath.Join(s.gate.dir, "Caddyfile")
	s.startGate()
	return s
}

// startGate starts the gate, for the first time or again. It always gets new addresses: while it is away, anybody may
// take the old ones.
func (s *stage) startGate() {
	s.t.Helper()
	g, callback := s.gate, proc.FreeAddr(s.t)
	g.addr, g.admin = proc.FreeAddr(s.t), proc.FreeAddr(s.t)
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	webhook_gate {
		store bolt %s
	}
}
http://%s {
	bind 127.0.0.1
	webhook_gate /hook github "%s" {
		confirm callback http://%s
		outcome http://%s/webhook-outcome
		in_doubt ask
	}
	reverse_proxy /hook %s
}
http://%s {
	bind 127.0.0.1
	webhook_gate_callback
}
`, g.admin, g.store, g.addr, secret, callback, s.addr, s.addr, callback)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	g.start()
}

// start starts the app, for the first time or again.
func (s *stage) start(crash string) {
	s.t.Helper()
	args := s.args
	if crash != "" {
		args = append([]string{s.crash + "=" + crash}, args...)
	}
	s.app = proc.Start(s.t, s.dir, "env", args...)
	s.app.WaitLine("listening on " + s.addr)
}

// crashed waits until the app has crashed.
func (s *stage) crashed() {
	s.t.Helper()
	if code := s.app.WaitExit(); code != -1 {
		s.t.Fatalf("the app ended by itself, exit %d:\n%s", code, s.app.Output())
	}
}

// counter is what the app has counted.
func (s *stage) counter() int {
	s.t.Helper()
	resp, err := client.Get("http://" + s.addr + "/counter")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var n int
	if _, err := fmt.Fscan(resp.Body, &n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// total wants the counter to be so much.
func (s *stage) total(want int) {
	s.t.Helper()
	if got := s.counter(); got != want {
		s.t.Fatalf("the counter is %d, want %d", got, want)
	}
}

// deliver sends the event through the gate and wants a receipt of the app's.
func (s *stage) deliver(what string, status int, duplicate bool) answer {
	s.t.Helper()
	a := s.gate.send(five)
	want(s.t, what, a, status, "", duplicate)
	if body := strings.ReplaceAll(a.Body, " ", ""); status == http.StatusOK && (body != `{"total":5}` || a.Header.Get("Content-Type") != "application/json") {
		s.t.Fatalf("%s: got %q, %v", what, a.Body, a.Header)
	}
	return a
}

var five = push("one", `{"amount":5}`)

// eachApp runs a test with each of the example apps.
func eachApp(t *testing.T, test func(t *testing.T, app shown)) {
	for _, app := range shownApps {
		t.Run(app.name, func(t *testing.T) {
			app.command(t) // skips here what is missing
			test(t, app)
		})
	}
}

func TestExampleAppsBehindTheGate(t *testing.T) {
	eachApp(t, func(t *testing.T, app shown) {
		t.Run("the effect is once and repeats get its answer", func(t *testing.T) {
			s := behindGate(t, app, "")
			first := s.deliver("first", http.StatusOK, false)
			if again := s.deliver("repeat", http.StatusOK, true); again.Body != first.Body {
				t.Fatalf("got %q, first was %q", again.Body, first.Body)
			}
			s.total(5)
		})
		t.Run("a final no is kept", func(t *testing.T) {
			s := behindGate(t, app, "")
			no := push("no", `{"amount":-1}`)
			first := s.gate.send(no)
			want(t, "first", first, http.StatusUnprocessableEntity, "", false)
			again := s.gate.send(no)
			want(t, "repeat", again, http.StatusUnprocessableEntity, "", true)
			if again.Body != first.Body || first.Body == "" {
				t.Fatalf("got %q, first was %q", again.Body, first.Body)
			}
			s.total(0)
		})
		t.Run("killed after the commit, the gate learns of it by asking", func(t *testing.T) {
			s := behindGate(t, app, "after_commit")
			want(t, "first", s.gate.send(five), http.StatusServiceUnavailable, "in_doubt", false)
			s.crashed()
			s.start("")
			s.deliver("second", http.StatusOK, true)
			s.gate.WaitLine("outcome learned by asking")
			s.deliver("third", http.StatusOK, true)
			s.total(5)
		})
		t.Run("killed before the commit, the next delivery is forwarded", func(t *testing.T) {
			s := behindGate(t, app, "before_commit")
			want(t, "first", s.gate.send(five), http.StatusServiceUnavailable, "in_doubt", false)
			s.crashed()
			s.start("")
			s.total(0)
			s.deliver("second", http.StatusOK, false)
			s.deliver("third", http.StatusOK, true)
			s.app.Kill()
			s.start("") // nothing of the torn transaction is left in its way
			s.total(5)
		})
		for _, point := range []string{"after_callback", "before_answer"} {
			t.Run("killed "+point+", the callback has told", func(t *testing.T) {
				s := behindGate(t, app, point)
				s.deliver("first", http.StatusOK, false)
				s.crashed()
				s.deliver("repeat without the app", http.StatusOK, true)
				s.start("")
				s.total(5)
			})
		}
		t.Run("both are killed, the gate asks as soon as it is back", func(t *testing.T) {
			s := behindGate(t, app, "after_commit")
			want(t, "first", s.gate.send(five), http.StatusServiceUnavailable, "in_doubt", false)
			s.crashed()
			s.gate.Kill()
			s.start("")
			s.startGate()
			s.gate.WaitLine("outcome learned by asking")
			s.app.Kill()
			s.deliver("repeat without the app", http.StatusOK, true)
		})
		if app.sqlite {
			t.Run("the gate is killed while the app works", func(t *testing.T) {
				s := behindGate(t, app, "")
				release := s.lock()
				sent := make(chan error, 1)
				go func() {
					_, err := do(s.gate.request(t.Context(), five))
					sent <- err
				}()
				s.waitFor("github", "one", http.StatusAccepted)
				s.gate.Kill()
				if err := <-sent; err == nil {
					t.Fatal("an answer, although the gate was killed")
				}
				release()
				s.app.WaitLine("could not be told")
				s.startGate()
				s.gate.WaitLine("outcome learned by asking")
				s.deliver("second", http.StatusOK, true)
				s.total(5)
			})
			t.Run("a failed transaction leaves nothing, and the next delivery is forwarded", func(t *testing.T) {
				s := behindGate(t, app, "")
				s.sql(`CREATE TRIGGER fails BEFORE INSERT ON outcomes BEGIN SELECT RAISE(ABORT, 'as it was told to'); END`)
				want(t, "first", s.gate.send(five), http.StatusServiceUnavailable, "temporary_processing_failure", false)
				s.total(0)
				s.sql(`DROP TRIGGER fails`)
				s.deliver("second", http.StatusOK, false)
				s.total(5)
			})
			t.Run("an app that cannot look says nothing", func(t *testing.T) {
				s := behindGate(t, app, "")
				s.sql(`ALTER TABLE outcomes RENAME TO away`)
				want(t, "first", s.gate.send(five), http.StatusServiceUnavailable, "in_doubt", false)
				s.sql(`ALTER TABLE away RENAME TO outcomes`)
				s.deliver("second", http.StatusOK, false)
				s.total(5)
			})
		}
	})
}
