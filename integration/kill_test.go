package integration

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup/failpoint"
)

var (
	killsFlag = flag.Int("kills", 500, "kills of gate and app in TestKilledAtEveryPoint; 10000 take about an hour: -timeout")
	seedFlag  = flag.Uint64("kill-seed", 0, "seed of TestKilledAtEveryPoint; default: the clock's")
)

// level is one way in which app and gate work together, with the points that are passed then.
type level struct {
	name    string
	app     int
	share   float64  // of all kills
	words   string   // of the gate; CALLBACK and APP are addresses
	points  []string // of the gate
	crashes []string // of the app
}

var (
	always = []string{
		failpoint.ReserveBefore, failpoint.ReserveAfter, failpoint.AbortBefore, failpoint.AbortAfter,
		failpoint.GroupBefore, failpoint.GroupAfter,
		failpoint.DeliveryArrived, failpoint.DeliveryRead,
		failpoint.ForwardBefore, failpoint.ForwardHeaders, failpoint.ForwardSent, failpoint.ForwardAnswered,
		failpoint.AnswerBefore, failpoint.AnswerBegun, failpoint.AnswerAfter,
	}
	withResponse = []string{failpoint.CommitBefore, failpoint.CommitAfter, failpoint.RejectBefore, failpoint.RejectAfter}
	withCallback = []string{
		failpoint.ConfirmBefore, failpoint.ConfirmAfter, failpoint.CallbackRead, failpoint.CallbackBefore, failpoint.CallbackAnswered,
	}
	withQuestion = []string{
		failpoint.OutcomeBefore, failpoint.OutcomeAnswered, failpoint.CommitBefore, failpoint.CommitAfter,
		failpoint.AbsentBefore, failpoint.AbsentAfter,
	}
)

var levels = []level{
	{"L1", 1, 0.3, "confirm callback http://CALLBACK\n\t\tin_doubt redeliver",
		slices.Concat(always, withCallback), []string{"before_commit", "after_commit", "after_callback", "before_answer"}},
	{"L2", 2, 0.3, "in_doubt redeliver",
		slices.Concat(always, withResponse), []string{"before_commit", "after_commit", "before_answer"}},
	{"L3", 3, 0.4, "confirm callback http://CALLBACK\n\t\toutcome http://APP/webhook-outcome\n\t\tin_doubt ask",
		slices.Concat(always, withCallback, withQuestion), []string{"before_commit", "after_commit", "after_callback", "before_answer"}},
}

// TestKilledAtEveryPoint kills gate and app with kill -9, again and again, while senders repeat every event until it is
// answered. Then it looks at what the app has done.
func TestKilledAtEveryPoint(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill-seed %d", seed)
	killable, app := killableGate(t), counterApp(t)
	var side sync.WaitGroup // not t.Parallel, which lets only as many run as there are processors: these mostly wait
	all := make([]findings, len(levels))
	for i, level := range levels {
		side.Go(func() {
			t.Run(level.name, func(t *testing.T) {
				l := newLab(t, level, killable, app, rand.New(rand.NewPCG(seed, uint64(i))))
				all[i] = *l.run(int(level.share * float64(*killsFlag)))
			})
		})
	}
	for _, scene := range scenes {
		side.Go(func() {
			t.Run(scene.name, func(t *testing.T) { scene.play(t, killable) })
		})
	}
	side.Wait()
	kills, events, doubles, told, lost := 0, 0, 0, 0, 0
	for _, f := range all {
		kills, events, doubles, told, lost = kills+f.kills, events+f.events, doubles+f.doubles, told+f.told, lost+f.lost
	}
	t.Logf("kills %d, events %d, double effects %d (besides %d at level 1 that the app was warned of), lost %d", kills, events, doubles-told, told, lost)
}

// TestEveryFailpointIsOneThatTheGateIsKilledAt: the levels fail if one of theirs is not reached; none is left out.
func TestEveryFailpointIsOneThatTheGateIsKilledAt(t *testing.T) {
	var swept []string
	for _, level := range levels {
		swept = append(swept, level.points...)
	}
	for _, scene := range scenes {
		swept = append(swept, scene.before, scene.after)
	}
	for _, point := range failpoint.All {
		if !slices.Contains(swept, point) {
			t.Errorf("no level kills the gate at %s", point)
		}
	}
	for _, point := range swept {
		if !slices.Contains(failpoint.All, point) {
			t.Errorf("failpoint.All lacks %s", point)
		}
	}
}

// TestTheShippedBinaryHasNoFailpoints: neither the points nor the variable are in what users get.
func TestTheShippedBinaryHasNoFailpoints(t *testing.T) {
	if failpoint.Enabled {
		t.Fatal("the tests themselves were built with failpoints")
	}
	words := append([]string{"EINLASS_FAILPOINT"}, failpoint.All...)
	if in, out := contained(t, killableGate(t), words); len(out) > 0 {
		t.Fatalf("the binary that is to be killed has %d of them and lacks %v", len(in), out)
	}
	if in, _ := contained(t, exe, words); len(in) > 0 {
		t.Errorf("the shipped binary contains %v", in)
	}
}

// contained sorts words by whether a file contains them.
func contained(t *testing.T, file string, words []string) (in, out []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if bytes.Contains(data, []byte(word)) {
			in = append(in, word)
		} else {
			out = append(out, word)
		}
	}
	return in, out
}

// killableGate is the gate built with failpoints, once for all tests here.
func killableGate(t *testing.T) string {
	t.Helper()
	path, err := builtKillable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var builtKillable = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(exe), "einlass-killable")
	out, err := exec.Command("go", "build", "-tags", buildTags("einlass_failpoints"), "-o", path, "github.com/einlass/einlass/caddy/einlass").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the gate with failpoints: %w\n%s", err, out)
	}
	return path, nil
})

// buildTags adds a tag to those of GOFLAGS, which a -tags of the command's own would replace.
func buildTags(tag string) string {
	for _, word := range strings.Fields(os.Getenv("GOFLAGS")) {
		if tags, ok := strings.CutPrefix(strings.TrimPrefix(word, "-"), "-tags="); ok {
			tag = tags + "," + tag
		}
	}
	return tag
}

// counterApp is the counter of apps/go, built.
func counterApp(t *testing.T) string {
	t.Helper()
	path, err := goApp()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
