package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einlass/einlass/integration/internal/proc"
)

// TestWrongConfigurationIsRefusedWhenLoaded: what only the environment, the files or the other gates of a config
// can show to be wrong. What the Caddyfile alone shows is tested beside its parser.
func TestWrongConfigurationIsRefusedWhenLoaded(t *testing.T) {
	t.Setenv("EMPTY_SECRET", "")
	t.Setenv("ONE_SECRET", "one-secret-value")
	t.Setenv("MALFORMED", "whsec_!!!!")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text string
		want []string
	}{
		{"unset environment variable", "webhook_gate /a github {env.NOT_SET_ANYWHERE}", []string{"{env.NOT_SET_ANYWHERE}", "set that environment variable"}},
		{"empty environment variable", "webhook_gate /a github {env.EMPTY_SECRET}", []string{"{env.EMPTY_SECRET}", "set that environment variable"}},
		{"missing file", "webhook_gate /a github {file./no/such/file}", []string{"{file./no/such/file}", "is the file there"}},
		{"empty file", "webhook_gate /a github {file." + empty + "}", []string{"is the file there"}},
		{"malformed secret from the environment", "webhook_gate /a standard-webhooks {env.MALFORMED}", []string{"secret 1", "base64"}},
		{"two gates of one source with different secrets", "webhook_gate /a github {env.ONE_SECRET}\n\twebhook_gate /b github other", []string{`source "github"`, "source <name>"}},
		{"two gates that share a source unawares", "webhook_gate /a github {env.ONE_SECRET}\n\twebhook_gate /b github {env.ONE_SECRET}", []string{`source "github"`, "would not reach the other's app", "source <name>"}},
		{"a contract that is not there", "webhook_gate /a github {env.ONE_SECRET} {\n contract /no/such/schema.json\n}", []string{"contract", "/no/such/schema.json"}},
		{"no event id", "webhook_gate /a none", []string{"event_id is missing", "event_id header NAME"}},
		{"unknown preset", "webhook_gate /a gihub x", []string{":3", "did you mean `github`"}},
		{"empty secret", `webhook_gate /a github ""`, []string{":3", "secret 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := caddyfile(t, "http://127.0.0.1:0 {\n\tbind 127.0.0.1\n\t"+c.text+"\n\trespond ok\n}\n")
			p := proc.Start(t, t.TempDir(), exe, "validate", "--config", file, "--adapter", "caddyfile")
			code, out := p.WaitExit(), p.Output()
			if code == 0 {
				t.Fatalf("accepted:\n%s", out)
			}
			for _, part := range c.want {
				if !strings.Contains(out, strings.ReplaceAll(part, `"`, `\"`)) {
					t.Errorf("the message lacks %q:\n%s", part, out)
				}
			}
			if strings.Contains(out, "one-secret-value") || strings.Contains(out, "!!!!") {
				t.Errorf("the message shows a secret:\n%s", out)
			}
		})
	}
}

func TestTwoGatesMayShareASourceThatBothOfThemName(t *testing.T) {
	t.Setenv("ONE_SECRET", "one-secret-value")
	validate(t, "http://127.0.0.1:0 {\n\tbind 127.0.0.1\n\twebhook_gate /a github {env.ONE_SECRET} {\n\t\tsource main\n\t}\n\twebhook_gate /b github {env.ONE_SECRET} {\n\t\tsource main\n\t}\n\trespond ok\n}\n")
}
