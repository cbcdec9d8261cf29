package integration

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/einlass/einlass/integration/internal/proc"
)

var update = flag.Bool("update", false, "write the JSON of the golden files anew; read the difference before you commit it")

const rule = "\n----------\n"

// TestAdapt holds each Caddyfile in adapt/ against the JSON below its line of dashes.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("adapt/*.caddytest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddytest"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, golden, _ := strings.Cut(string(content), rule)
			got := adapt(t, text)
			if *update {
				if err := os.WriteFile(file, []byte(text+rule+got+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if strings.TrimSpace(golden) != got {
				t.Errorf("adapts to\n%s\nwant\n%s", got, golden)
			}
		})
	}
}

// TestDocumentedCaddyfilesAreRight adapts and provisions the example and every Caddyfile of the README.
func TestDocumentedCaddyfilesAreRight(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no Caddyfile")
	}
	example, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("STRIPE_WEBHOOK_SECRET", "whsec_for_the_test")
	t.Setenv("GITHUB_SECRET", "for the test")
	t.Setenv("GITHUB_SECRET_OLD", "for the test, too")
	t.Setenv("SHOP_SECRET", "for the test, also")
	t.Run("Caddyfile.example", func(t *testing.T) {
		formatted(t, string(example))
		validate(t, string(example))
	})
	for _, block := range blocks {
		first, _, _ := bytes.Cut(bytes.TrimSpace(block[1]), []byte("\n"))
		t.Run(string(first), func(t *testing.T) {
			formatted(t, string(block[1]))
			validate(t, string(block[1]))
		})
	}
}

// formatted holds a Caddyfile against the form that `fmt` gives it; in another Caddy warns at every start.
func formatted(t *testing.T, text string) {
	t.Helper()
	p := proc.Start(t, t.TempDir(), exe, "fmt", caddyfile(t, text))
	if p.WaitExit() != 0 {
		t.Errorf("not formatted; `fmt` gives:\n%s", p.Output())
	}
}

// adapt gives the JSON of a Caddyfile, indented.
func adapt(t *testing.T, text string) string {
	t.Helper()
	p := proc.Start(t, t.TempDir(), exe, "adapt", "--config", caddyfile(t, text), "--adapter", "caddyfile")
	if code := p.WaitExit(); code != 0 {
		t.Fatalf("adapt: exit %d\n%s", code, p.Output())
	}
	var indented bytes.Buffer
	for line := range strings.Lines(p.Output()) {
		if strings.HasPrefix(line, "{") && !strings.Contains(line, `"level":`) {
			if err := json.Indent(&indented, []byte(strings.TrimSpace(line)), "", "\t"); err != nil {
				t.Fatalf("%v in\n%s", err, line)
			}
		}
	}
	return indented.String()
}

// validate also provisions every module, as a start would, and opens no store.
func validate(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	text = strings.ReplaceAll(text, "/etc/einlass/event.schema.json", schema(t, dir))
	p := proc.Start(t, dir, exe, "validate", "--config", caddyfile(t, text), "--adapter", "caddyfile")
	if code := p.WaitExit(); code != 0 {
		t.Fatalf("validate: exit %d\n%s", code, p.Output())
	}
	if matches, _ := filepath.Glob(filepath.Join(dir, "*.db")); matches != nil {
		t.Errorf("validate made a store: %v", matches)
	}
}

func caddyfile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func schema(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "event.schema.json")
	if err := os.WriteFile(file, []byte(`{"type":"object","required":["id"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
