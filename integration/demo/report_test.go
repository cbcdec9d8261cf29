package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func sample() *Report {
	good := &Step{Name: "first delivery", Sent: "evt-1 +5", Answer: "200 total 5", Effect: "+5, now 5", OK: true}
	checkEqual(good, "the answer is 200", 200, 200)
	bad := &Step{Name: "repeat", Sent: "evt-1 +5", Answer: "500", Effect: "+0, now 5", OK: true}
	checkEqual(bad, "the answer is 200", 500, 200)
	bad.check("it is marked <as> a repeat", true, "")
	return &Report{Requests: 2, Steps: []*Step{good, bad}}
}

func TestReportCountsConditions(t *testing.T) {
	t.Parallel()
	r := sample()
	r.count()
	r.count() // again: nothing is counted twice
	if r.Conditions != 3 || r.Failed != 1 || r.holds() || !r.Steps[0].OK || r.Steps[1].OK {
		t.Errorf("got %+v", r)
	}
	r.Steps = r.Steps[:1]
	if r.count(); !r.holds() {
		t.Error("it does not hold though every condition does")
	}
	if r.Error = "cut short"; r.holds() {
		t.Error("a story that was cut short holds")
	}
	if (&Report{}).holds() {
		t.Error("a report without conditions holds")
	}
}

func TestReportAsATable(t *testing.T) {
	t.Parallel()
	r := sample()
	r.count()
	r.Dir = "/tmp/x"
	var out bytes.Buffer
	if err := r.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	const want = `STEP            SENT      ANSWER       EFFECT     OK
first delivery  evt-1 +5  200 total 5  +5, now 5  yes
repeat          evt-1 +5  500          +0, now 5  NO

Does not hold: repeat: the answer is 200
  found: 500 instead of 200

2 requests, 3 conditions, 1 failed.
The files are in /tmp/x
`
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
}

func TestReportAsJSON(t *testing.T) {
	t.Parallel()
	r := sample()
	r.count()
	var out bytes.Buffer
	if err := r.writeJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Requests, Conditions, Failed int
		Steps                        []struct {
			Name       string
			OK         bool
			Conditions []Condition
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Requests != 2 || got.Conditions != 3 || got.Failed != 1 || len(got.Steps) != 2 ||
		got.Steps[1].Conditions[0].Got != "500 instead of 200" {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(out.String(), `\u003c`) {
		t.Error("it is escaped for HTML")
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, p := range []*progress{newProgress(&out), {out: &out}} {
		p.show("a long step")
		p.show("a step")
		p.clear()
	}
	if want := "\r  1  a long step\r  2  a step     \r           \r"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
