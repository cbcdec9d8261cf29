package verifier_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/einlass/einlass/verifier"
	"github.com/einlass/einlass/verifier/verifiertest"
)

var vectorDir = flag.String("vectors", "testdata", "directory of vector files, absolute, or relative to the package or the module")

// wider are the cases in which the sender's library is narrower than the scheme
// it documents, so that accepting is right too.
var wider = []string{
	"paddle-*-roll-good-bad", "elevenlabs-*-multi-bad-good", "pusher-*-ctype",
	"stripe-*-spaces", "clerk-*-webhook-names", "resend-*-webhook-names",
}

// tally is one row of the table.
type tally struct {
	sender                                                 string
	accepted, refused, stricter, wider, wrong, unsupported int
	notes                                                  []string
}

// TestVectors judges deliveries signed by the senders' own libraries. With -v it
// prints a table: stricter are valid cases refused by a stated policy.
func TestVectors(t *testing.T) {
	files, err := verifiertest.LoadVectors(findVectors(*vectorDir))
	if err != nil {
		t.Fatal(err)
	}
	var rows []tally
	for _, file := range files {
		row := tally{sender: file.Provider}
		preset, ok := verifier.LookupPreset(file.Provider)
		for _, v := range file.Cases {
			if !ok {
				row.unsupported++
				continue
			}
			row.judge(preset, v)
		}
		if row.wrong > 0 {
			t.Errorf("%s: %d of %d cases mismatch", row.sender, row.wrong, len(file.Cases))
		}
		rows = append(rows, row)
	}
	t.Log("\n" + table(rows))
}

// findVectors lets a directory be given relative to the module too, as whoever
// runs `go test ./verifier -vectors DIR` there writes it.
func findVectors(dir string) string {
	if _, err := os.Stat(dir); err != nil && !filepath.IsAbs(dir) {
		return filepath.Join("..", dir)
	}
	return dir
}

// judge runs one case and adds it to the row.
func (r *tally) judge(preset *verifier.Preset, v verifiertest.Vector) {
	secrets, ok := v.Secrets()
	if !ok {
		r.unsupported++
		return
	}
	err := deliver(preset, secrets, v)
	switch {
	case v.Valid() && err == nil:
		r.accepted++
	case !v.Valid() && err != nil:
		r.refused++
	case err == nil && matches(wider, v.ID):
		r.wider++
		r.notes = append(r.notes, "wider: "+v.ID+": "+v.Why)
	case err != nil && statedPolicy(err) && v.Tagged("policy", "strictness", "duplicate-header"):
		r.stricter++
		r.notes = append(r.notes, fmt.Sprintf("stricter: %s: %v", v.ID, err))
	default:
		r.wrong++
		r.notes = append(r.notes, fmt.Sprintf("MISMATCH: %s: want %s, got %v (%s)", v.ID, v.Expect, err, v.Why))
	}
}

// deliver verifies one case as a gate would; nil = accepted.
func deliver(preset *verifier.Preset, secrets []verifier.Secret, v verifiertest.Vector) error {
	verify, err := preset.New(verifier.Options{Secrets: secrets})
	if err != nil {
		return err
	}
	req, body, err := v.Request()
	if err != nil {
		return err
	}
	if int64(len(body)) > preset.MaxBody {
		return errors.New("the body is above the sender's limit")
	}
	check, err := verify.Begin(req)
	if err != nil {
		return err
	}
	_, _ = check.Write(body)
	_, err = check.Finish(body)
	return err
}

// statedPolicy reports whether a refusal is one of the documented rules in which
// this package is stricter than a sender's library.
func statedPolicy(err error) bool {
	var refusal *verifier.Error
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Reason {
	case verifier.ReasonRepeatedHeader, verifier.ReasonFuture, verifier.ReasonMalformedHeader:
		return true
	}
	return false
}

func matches(patterns []string, id string) bool {
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, id); ok {
			return true
		}
	}
	return false
}

func table(rows []tally) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "sender\taccepted\trefused\tstricter\twider\tmismatched\tunsupported")
	total := tally{sender: "total"}
	line := func(r tally) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", r.sender, r.accepted, r.refused, r.stricter, r.wider, r.wrong, r.unsupported)
	}
	for _, r := range rows {
		line(r)
		total.accepted += r.accepted
		total.refused += r.refused
		total.stricter += r.stricter
		total.wider += r.wider
		total.wrong += r.wrong
		total.unsupported += r.unsupported
		total.notes = append(total.notes, r.notes...)
	}
	line(total)
	_ = w.Flush()
	for _, note := range total.notes {
		fmt.Fprintln(&out, note)
	}
	return out.String()
}
