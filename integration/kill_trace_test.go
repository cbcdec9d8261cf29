package integration

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
)

// In ms: the gate's lease, and how late an attempt may reach the app after it was sent.
const leaseMS, lateMS = 6000, 1500

// arrival is an attempt that the app works on.
type arrival struct {
	attempt string
	at      int    // in ms
	flagged bool   // in doubt
	process string // of the gate that sent it
}

// trace goes through what the app wrote and gives the number of attempts that reached it.
func (l *lab) trace(f *findings) (arrived int) {
	file, err := os.Open(l.app.log)
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	seen := map[string][]arrival{}
	told := map[string]int{} // when a confirmation had its 200
	var working map[string][]arrival
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 3 && words[0] == "start":
			working = map[string][]arrival{} // nothing has survived
		case len(words) == 3 && words[0] == "end":
			id, attempt := words[1], words[2]
			working[id] = slices.DeleteFunc(working[id], func(a arrival) bool { return a.attempt == attempt })
			if len(working[id]) == 0 {
				delete(working, id)
			}
		case len(words) == 5 && words[0] == "told" && words[3] != "aborted" && words[4] == "200":
			at, _ := strconv.Atoi(strings.TrimPrefix(words[2], "at="))
			told[words[1]] = at
		case len(words) == 6 && words[0] == "begin":
			arrived++
			at, _ := strconv.Atoi(strings.TrimPrefix(words[3], "at="))
			id, now := words[1], arrival{words[2], at, words[4] != `in_doubt=""`, words[5]}
			if f != nil {
				f.overlaps += len(working[id])
				l.arrive(id, now, seen[id], working[id])
				if since, ok := told[id]; ok && at-since > lateMS {
					l.senders.fault("event %s: %+v reached the app, which had confirmed the event at %d", id, now, since)
				}
			}
			seen[id], working[id] = append(seen[id], now), append(working[id], now)
		}
	}
	return arrived
}

// arrive judges an arrival by those before it. An attempt reaches the app once. Where the gate cannot ask, another comes
// only when the lease of the one before is over, which nobody has seen the end of, and says so. Where it asks, another
// comes when the app has said that it knows nothing of the event; while one is worked on, the app does not say that, so
// both are there only if the one before was still on its way, from a gate that is gone, or with a warning.
func (l *lab) arrive(id string, now arrival, seen, working []arrival) {
	for _, before := range seen {
		if before.attempt == now.attempt {
			l.senders.fault("event %s: %+v reached the app twice: %+v", id, now, before)
		} else if l.level.app < 3 && (!now.flagged || now.at-before.at < leaseMS-lateMS) { // it began before it has arrived
			l.senders.fault("event %s: %+v came too soon or without a warning, after %+v", id, now, before)
		}
	}
	for _, before := range working {
		if !now.flagged && now.process == before.process {
			l.senders.fault("event %s: %+v came while %+v was worked on", id, now, before)
		}
	}
}

// stories tells all that was written about the first events with a fault.
func (l *lab) stories(faults []string) {
	told := map[string]bool{}
	for _, fault := range faults {
		words := strings.Fields(fault)
		if len(words) < 2 || words[0] != "event" || len(told) == 3 {
			continue
		}
		id := strings.TrimSuffix(words[1], ":")
		if told[id] {
			continue
		}
		told[id] = true
		l.t.Logf("event %s:\n%s\n%s", id, grep(l.gate.log, `"`+id+`"`), grep(l.app.log, " "+id+" "))
	}
}

// grep gives the lines of a file that hold a text, and those of its processes' starts before them.
func grep(path, text string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var found []string
	start := ""
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "start ") {
			start = line
			continue
		}
		if strings.Contains(line, text) {
			found = append(found, start+line)
			start = ""
		}
	}
	return strings.Join(found[:min(len(found), 60)], "")
}
