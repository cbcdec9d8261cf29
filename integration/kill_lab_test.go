package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lab is one level: a gate and an app that are killed, and the senders.
type lab struct {
	*site
	level
	t       *testing.T
	app     *victim
	gate    *victim
	senders *senders

	mu      sync.Mutex // guards all below
	rng     *rand.Rand
	want    int // kills
	struck  tally
	missed  tally
	enough  chan struct{} // closed when there were as many
	stopped error         // a process that ended otherwise
}

func newLab(t *testing.T, level level, killable, app string, rng *rand.Rand) *lab {
	addr := lowAddr(t)
	l := &lab{
		site: newSite(t, addr, level.words), level: level, t: t, rng: rng,
		struck: tally{}, missed: tally{}, enough: make(chan struct{}),
	}
	l.gate = l.site.gate(killable)
	l.app = &victim{t: t, name: "the app", log: filepath.Join(l.dir, "app.log"), command: func(armed string, process int) *exec.Cmd {
		args := []string{"-listen", addr, "-db", l.counter(), "-level", fmt.Sprint(level.app)}
		if level.app == 3 && process%2 == 0 { // both kinds of "I know nothing of it"
			args = append(args, "-fence")
		}
		cmd := exec.Command(app, args...)
		cmd.Env = append(os.Environ(), "EINLASS_APP_CRASH="+armed)
		return cmd
	}}
	t.Cleanup(l.app.stop)
	l.senders = newSenders(t, l.url(), rng.Uint64())
	return l
}

func (l *lab) counter() string { return filepath.Join(l.dir, "counter.db") }

// unarmed lets the app trace and never crash.
const unarmed = "before_answer:1000000000"

// run kills, lets everything end, and looks at it.
func (l *lab) run(want int) *findings {
	l.want = max(want, 1)
	began := time.Now()
	var loops sync.WaitGroup
	loops.Go(func() { l.kill(l.gate, l.gatePlan) })
	loops.Go(func() { l.kill(l.app, l.appPlan) })
	l.senders.start(l.enough)
	loops.Wait()
	if l.stopped != nil {
		close(l.senders.abandon)
		l.senders.wait()
		l.t.Fatal(l.stopped)
	}
	l.gate.mustStart("")
	l.app.mustStart(unarmed)
	l.senders.finish()
	chaos := time.Since(began)
	l.gate.stop()
	return l.audit(chaos)
}

// order is one kill to come.
type order struct {
	point    string
	passage  int
	patience time.Duration
}

// gatePlan is a round over the gate's points.
func (l *lab) gatePlan() (plan []order) {
	for _, point := range shuffled(l.rng, l.points) {
		switch {
		case slices.Contains(withQuestion, point), strings.HasPrefix(point, "store-abort"): // once in a while
			plan = append(plan, order{point, 1, 6 * time.Second})
		case strings.HasPrefix(point, "answer"): // often it is only a 503
			for range 3 {
				plan = append(plan, order{point, 1 + l.rng.IntN(8), 3 * time.Second})
			}
		default:
			plan = append(plan, order{point, 1 + l.rng.IntN(8), 3 * time.Second})
		}
	}
	return plan
}

// appPlan is a round over the app's points. It is killed less often than the gate.
func (l *lab) appPlan() (plan []order) {
	for _, point := range shuffled(l.rng, l.crashes) {
		plan = append(plan, order{point, 10 + l.rng.IntN(50), 6 * time.Second})
	}
	return plan
}

func shuffled(rng *rand.Rand, points []string) []string {
	points = slices.Clone(points)
	rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	return points
}

// kill has a program killed as planned, and starts it again at once.
func (l *lab) kill(v *victim, round func() []order) {
	var plan []order
	for {
		if len(plan) == 0 {
			l.mu.Lock()
			plan = round()
			l.mu.Unlock()
		}
		next := plan[0]
		plan = plan[1:]
		struck := false
		err := v.start(fmt.Sprint(next.point, ":", next.passage))
		if err == nil {
			struck, err = v.end(l.enough, next.patience)
		}
		if l.note(next.point, struck, err) {
			return
		}
	}
}

// note counts a kill and tells whether it was the last.
func (l *lab) note(point string, struck bool, err error) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.enough:
		over = true
	default:
	}
	switch {
	case err != nil:
		l.stopped = err
	case struck:
		l.struck[point]++
	case !over: // the last ones have had no time
		l.missed[point]++
	}
	if over {
		return true
	}
	// Points that no process was killed at get some more time.
	n := l.struck.sum()
	if l.missed.sum() > 20+n/4 {
		l.stopped = fmt.Errorf("points are not passed: %v", l.missed)
		err = l.stopped
	}
	if err != nil || n >= l.want && len(l.lacking()) == 0 || n >= 2*l.want+100 {
		close(l.enough)
		return true
	}
	return false
}

// lacking are the points that nobody was killed at. The caller holds mu.
func (l *lab) lacking() []string {
	return slices.DeleteFunc(slices.Concat(l.points, l.crashes), func(point string) bool { return l.struck[point] > 0 })
}

// tally counts by a name.
type tally map[string]int

func (c tally) sum() (n int) {
	for _, m := range c {
		n += m
	}
	return n
}

func (c tally) String() string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(c)) {
		end := "  "
		if i%4 == 3 {
			end = "\n"
		}
		fmt.Fprintf(&b, "%20s %4d%s", name, c[name], end)
	}
	return strings.TrimRight(b.String(), " \n")
}
