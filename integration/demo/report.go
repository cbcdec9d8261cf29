package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is what the demonstration found.
type Report struct {
	Requests   int64   `json:"requests"`   // sent to the gate
	Conditions int     `json:"conditions"` // judged
	Failed     int     `json:"failed"`     // of the conditions
	Steps      []*Step `json:"steps"`
	Dir        string  `json:"dir,omitempty"`   // where the files are, if they were kept
	Error      string  `json:"error,omitempty"` // why it ended early
}

// Step is one thing that was done and what came of it.
type Step struct {
	Name       string      `json:"name"`
	Sent       string      `json:"sent"`
	Answer     string      `json:"answer"`
	Effect     string      `json:"effect"`
	OK         bool        `json:"ok"`
	Conditions []Condition `json:"conditions"`
}

// Condition is one thing that must hold.
type Condition struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Got  string `json:"got,omitempty"` // what was found instead
}

// check judges a condition; got is what was found, shown where the condition does not hold.
func (s *Step) check(name string, ok bool, got any) {
	c := Condition{Name: name, OK: ok}
	if !ok {
		s.OK = false
		c.Got = fmt.Sprint(got)
	}
	s.Conditions = append(s.Conditions, c)
}

// checkEqual judges whether something is what it should be.
func checkEqual[T comparable](s *Step, name string, got, want T) {
	s.check(name, got == want, fmt.Sprintf("%v instead of %v", got, want))
}

// count fills in the sums.
func (r *Report) count() {
	r.Conditions, r.Failed = 0, 0
	for _, step := range r.Steps {
		r.Conditions += len(step.Conditions)
		for _, c := range step.Conditions {
			if !c.OK {
				r.Failed++
			}
		}
	}
}

// holds tells whether the story came to its end and every condition held.
func (r *Report) holds() bool { return r.Error == "" && r.Failed == 0 && r.Conditions > 0 }

// writeJSON prints the report for programs.
func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// writeTable prints the report for people: a row per step, what does not hold beneath, and the sums.
func (r *Report) writeTable(w io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "STEP\tSENT\tANSWER\tEFFECT\tOK")
	for _, step := range r.Steps {
		ok := "yes"
		if !step.OK {
			ok = "NO"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", step.Name, step.Sent, step.Answer, step.Effect, ok)
	}
	_ = table.Flush() // into memory
	for _, step := range r.Steps {
		for _, c := range step.Conditions {
			if !c.OK {
				_, _ = fmt.Fprintf(&text, "\nDoes not hold: %s: %s\n  found: %s\n", step.Name, c.Name, c.Got)
			}
		}
	}
	_, _ = fmt.Fprintf(&text, "\n%d requests, %d conditions, %d failed.\n", r.Requests, r.Conditions, r.Failed)
	if r.Dir != "" {
		_, _ = fmt.Fprintf(&text, "The files are in %s\n", r.Dir)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
