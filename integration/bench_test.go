package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/proc"
)

// roundTime is how long each kind of delivery is sent in a round. The kinds take turns, so that a machine whose
// speed drifts does not decide between them.
const roundTime = time.Second

// BenchmarkBesideReverseProxy measures the gate beside Caddy's bare reverse_proxy to the same app, in one run:
//
//	go test ./integration -run '^$' -bench BesideReverseProxy -benchtime 5x
//
// The app is a Caddy of its own that answers every request. Reported are medians over the rounds: throughputs
// as ratios to bare, first deliveries at rest as their median latency beside bare and beside the disk's own
// flush, and the flushes per first delivery.
func BenchmarkBesideReverseProxy(b *testing.B) {
	for _, concurrent := range []int{1, 64} {
		b.Run(strconv.Itoa(concurrent), func(b *testing.B) {
			benchmark(b, concurrent)
		})
	}
}

// benchSites are the sites of the benchmark, behind each other on one process, so that all share its settings.
type benchSites struct {
	*proc.Process
	bare, gated, respond string
	dir                  string
}

func startBenchSites(b *testing.B) *benchSites {
	s := &benchSites{bare: proc.FreeAddr(b), gated: proc.FreeAddr(b), respond: proc.FreeAddr(b), dir: b.TempDir()}
	behind := proc.FreeAddr(b)
	run := func(name, text string) *proc.Process {
		file := filepath.Join(s.dir, name)
		head := "{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\toutput file " + file + ".log\n\t}\n"
		if err := os.WriteFile(file, []byte(head+text), 0o600); err != nil {
			b.Fatal(err)
		}
		p := proc.Start(b, s.dir, exe, "run", "--config", file, "--adapter", "caddyfile")
		return p
	}
	run("app", fmt.Sprintf("}\nhttp://%s {\n\tbind 127.0.0.1\n\trespond \"ok\"\n}\n", behind))
	s.Process = run("gate", fmt.Sprintf(`	webhook_gate {
		store bolt %s
	}
}
http://%s {
	bind 127.0.0.1
	reverse_proxy %s
}
http://%s {
	bind 127.0.0.1
	webhook_gate github %q
	reverse_proxy %s
}
http://%s {
	bind 127.0.0.1
	respond "ok"
}
`, filepath.Join(s.dir, "receipts.db"), s.bare, behind, s.gated, secret, behind, s.respond))
	for _, addr := range []string{behind, s.bare, s.gated, s.respond} {
		waitListening(b, addr)
	}
	return s
}

func benchmark(b *testing.B, concurrent int) {
	s := startBenchSites(b)
	var events atomic.Int64
	fresh := func() []byte { return rawPush(fmt.Sprintf("event-%d-%d", concurrent, events.Add(1)), true) }
	known := rawPush("known", true)
	forged := rawPush("forged", false)
	kinds := []struct {
		name    string
		addr    string
		request func() []byte
		status  string
	}{
		{"bare", s.bare, func() []byte { return known }, "200"},
		{"respond", s.respond, func() []byte { return known }, "200"},
		{"first", s.gated, fresh, "200"},
		{"repeat", s.gated, func() []byte { return known }, "200"},
		{"refused", s.gated, func() []byte { return forged }, "401"},
	}
	perSecond := map[string][]float64{}
	latency := map[string][]float64{}
	for _, kind := range kinds { // warm up: connections, the known event
		load(b, kind.addr, concurrent, roundTime/4, kind.request, kind.status)
	}
	b.ResetTimer()
	for range b.N {
		for _, kind := range kinds {
			n, median := load(b, kind.addr, concurrent, roundTime, kind.request, kind.status)
			perSecond[kind.name] = append(perSecond[kind.name], float64(n)/roundTime.Seconds())
			latency[kind.name] = append(latency[kind.name], float64(median.Microseconds())/1000)
		}
	}
	b.StopTimer()
	report(b, concurrent, perSecond, latency, s, int(events.Load())+1) // and the known event's own
}

func report(b *testing.B, concurrent int, perSecond, latency map[string][]float64, s *benchSites, firsts int) {
	bare := median(perSecond["bare"])
	b.ReportMetric(0, "ns/op") // a round's length says nothing
	b.ReportMetric(bare, "bare/s")
	for _, name := range []string{"respond", "first", "repeat", "refused"} {
		ratios := make([]float64, len(perSecond[name]))
		for i := range ratios {
			ratios[i] = perSecond[name][i] / perSecond["bare"][i]
		}
		b.ReportMetric(median(ratios), name+"/bare")
	}
	if concurrent == 1 {
		b.ReportMetric(median(latency["bare"]), "bare-ms")
		b.ReportMetric(median(latency["first"]), "first-ms")
		b.ReportMetric(flush(b, s.dir), "flush-ms")
	}
	s.Stop()
	b.ReportMetric(float64(flushes(b, s))/float64(firsts), "flushes/first")
}

// flushes reads from the log what the store counted when it was closed.
func flushes(b *testing.B, s *benchSites) int {
	text, err := os.ReadFile(filepath.Join(s.dir, "gate.log"))
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`"store of receipts closed".*"flushes":(\d+)`).FindSubmatch(text)
	if m == nil {
		b.Fatal("the log does not tell the store's flushes")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// flush measures the disk's own flush: 4 KiB over the same place, then fsync; the median in milliseconds.
func flush(b *testing.B, dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var took []float64
	for range 300 {
		began := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
	return median(took)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// load sends requests on so many connections for so long, and gives the number of answers and their median time.
func load(b *testing.B, addr string, connections int, length time.Duration, request func() []byte, status string) (int, time.Duration) {
	b.Helper()
	var wg sync.WaitGroup
	took := make([][]time.Duration, connections)
	errs := make([]error, connections)
	end := time.Now().Add(length)
	for i := range connections {
		wg.Go(func() { took[i], errs[i] = hammer(addr, end, request, status) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return len(all), all[len(all)/2]
}
