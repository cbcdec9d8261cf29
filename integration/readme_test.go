package integration

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/einlass/einlass/verifier"
)

// TestReadmeListsEveryPreset holds the README's table against what the presets know.
func TestReadmeListsEveryPreset(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, p := range verifier.Presets() {
		if row := presetRow(p); !strings.Contains(string(readme), row+"\n") {
			missing = append(missing, row)
		}
	}
	if missing != nil {
		t.Errorf("the README's table of presets lacks these rows:\n%s", strings.Join(missing, "\n"))
	}
}

// TestReadmeShowsTheAppsThatAreTested finds every line of Python and SQL of the README in the example app.
func TestReadmeShowsTheAppsThatAreTested(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	app, err := os.ReadFile("apps/python/app.py")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:python|sql)\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) < 4 {
		t.Fatalf("the README shows %d blocks", len(blocks))
	}
	for _, block := range blocks {
		indented := "    " + strings.TrimSpace(strings.ReplaceAll(string(block[1]), "\n", "\n    "))
		indented = regexp.MustCompile(`(?m)^ +$`).ReplaceAllString(indented, "")
		if !strings.Contains(string(app), string(block[1])) && !strings.Contains(string(app), indented) {
			t.Errorf("not in apps/python/app.py:\n%s", block[1])
		}
	}
}

func presetRow(p *verifier.Preset) string {
	signed := map[verifier.Tri]string{verifier.Yes: "signed", verifier.No: "not signed; the body's digest guards", verifier.Unknown: "not known"}[p.IDSigned]
	if p.IDSigned == verifier.No && !p.ReplayGuard {
		signed = "not signed"
	}
	window, answered := "none", "8s"
	if p.Tolerance > 0 {
		window = "± " + short(p.Tolerance)
	}
	if p.Deadline > 0 {
		// A tenth less than the sender's own, at least half a second.
		answered = fmt.Sprintf("%s (it waits %s)", short(p.Deadline-max(p.Deadline/10, 500*time.Millisecond)), short(p.Deadline))
	}
	retries := p.Retries.String()
	if p.Retries == verifier.Yes && p.RetryHorizon > 0 {
		retries += ", for " + short(p.RetryHorizon)
	}
	return fmt.Sprintf("| `%s` | %s | `%s` (%s) | %s | %s | %s | %s | %s |",
		p.Name, p.Title, p.EventID, signed, window, answered, humanize.IBytes(uint64(p.MaxBody)), p.Compare, retries)
}

// short writes a duration without its zero parts: 5m instead of 5m0s.
func short(d time.Duration) string {
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "" || strings.HasSuffix(d.String(), "s") && !strings.HasSuffix(d.String(), "m0s") {
		return d.String()
	}
	return s
}
