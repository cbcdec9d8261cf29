package integration

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// TestTheDemonstrationHolds runs the whole story as a user does, with the real gate and a real app, each a
// process of its own.
func TestTheDemonstrationHolds(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), exe, "webhook-gate", "demo", "--json")
	out, err := cmd.Output()
	var report struct {
		Requests   int
		Conditions int
		Failed     int
	}
	if jsonErr := json.Unmarshal(out, &report); jsonErr != nil {
		t.Fatalf("%v, %v\n%s", err, jsonErr, out)
	}
	if err != nil || report.Failed != 0 || report.Requests < 35 || report.Conditions < 55 {
		t.Fatalf("%v: %d requests, %d conditions, %d failed\n%s", err, report.Requests, report.Conditions, report.Failed, out)
	}
	t.Logf("%d requests, %d conditions", report.Requests, report.Conditions)
}
