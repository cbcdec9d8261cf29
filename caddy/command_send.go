package caddy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/einlass/einlass/verifier"
)

// sendOptions are the flags of `webhook-gate send`.
type sendOptions struct {
	provider string
	secret   string
	bodyFile string
	id       string
	typ      string
	repeat   int
	parallel int
	conflict bool
	asJSON   bool
	timeout  time.Duration
}

// Bounds of what one call sends: it is a tool for looking, not for load.
const (
	maxRepeat   = 1000
	maxParallel = 256
)

func sendCommand() *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send --provider <name> --secret <secret> [--body <file>] [--id <id>] [--repeat <n>] [--parallel <n>] [--conflict] [--json] <url>",
		Short: "Send signed test deliveries and show the answers",
		Long: `Send signed test deliveries, as the named sender would, and show the answers in a table.

The first row is the first delivery; with --parallel that many of it are sent at once. --repeat sends the same
event again, one after the other; --conflict sends other content under the same event id at the end. The body is
the sender's sample or --body; an id or type that stands in the body is then the file's own.

The secret may also come from the environment variable WEBHOOK_SECRET, which keeps it out of the process list.
The exit status is 0 if every delivery was answered, whatever the answer.`,
		Example: examples(
			`webhook-gate send --provider github --secret "It's a secret" --repeat 1 --conflict http://localhost:8080/github`,
			`webhook-gate send --provider stripe --secret whsec_example --parallel 8 http://localhost:8080/stripe`,
			`webhook-gate send --provider github --secret s3cret --body push.json --json http://localhost:8080/github`),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("send takes one URL, such as http://localhost:8080/github, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.secret == "" {
				o.secret = os.Getenv("WEBHOOK_SECRET")
			}
			cmd.SilenceUsage = true
			return runSend(cmd.Context(), cmd.OutOrStdout(), o, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.provider, "provider", "p", "", "the sender whose scheme signs, such as github")
	f.StringVarP(&o.secret, "secret", "s", "", "the shared secret (default: $WEBHOOK_SECRET)")
	f.StringVarP(&o.bodyFile, "body", "b", "", "file with the body, - for standard input (default: the sender's sample)")
	f.StringVar(&o.id, "id", "", "event id of the sample (default: a new one)")
	f.StringVar(&o.typ, "type", "", "event type of the sample (default: the sample's own)")
	f.IntVarP(&o.repeat, "repeat", "r", 0, "send the same event this many times more, one after the other")
	f.IntVar(&o.parallel, "parallel", 0, "begin with this many deliveries of the event at once")
	f.BoolVar(&o.conflict, "conflict", false, "end with other content under the same event id")
	f.BoolVar(&o.asJSON, "json", false, "print JSON instead of a table")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for each answer")
	return cmd
}

func runSend(ctx context.Context, out io.Writer, o sendOptions, url string) error {
	s, err := newSample(o, url)
	if err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	deliveries := s.deliver(ctx, o)
	if o.asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(deliveries); err != nil {
			return err
		}
	} else if err := printDeliveries(out, deliveries); err != nil {
		return err
	}
	for _, d := range deliveries {
		if d.Error != "" {
			return errors.New("not every delivery was answered")
		}
	}
	return nil
}

func (o sendOptions) check() error {
	switch {
	case o.provider == "":
		return fmt.Errorf("--provider is missing: one of %s", strings.Join(presetNames(), ", "))
	case o.secret == "":
		return errors.New("--secret is missing: give the secret that the gate has, or set WEBHOOK_SECRET")
	case o.repeat < 0 || o.repeat > maxRepeat:
		return fmt.Errorf("--repeat must be between 0 and %d", maxRepeat)
	case o.parallel < 0 || o.parallel > maxParallel:
		return fmt.Errorf("--parallel must be between 0 and %d", maxParallel)
	}
	return nil
}

func presetNames() []string {
	var names []string
	for _, p := range verifier.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// sent is one delivery with its answer, as it is shown.
type sent struct {
	Step    string  `json:"step"` // first, repeat, parallel, conflict
	Status  int     `json:"status,omitempty"`
	Code    string  `json:"code,omitempty"`
	Receipt string  `json:"receipt,omitempty"` // duplicate, where the stored answer was given
	Retry   string  `json:"retry_after,omitempty"`
	Millis  float64 `json:"ms"`
	Body    string  `json:"body,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func printDeliveries(out io.Writer, deliveries []sent) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tSTEP\tSTATUS\tCODE\tRETRY-AFTER\tRECEIPT\tMS\tBODY")
	var errs []string
	for i, d := range deliveries {
		status := fmt.Sprintf("%d %s", d.Status, http.StatusText(d.Status))
		if d.Error != "" {
			status = "no answer"
			errs = append(errs, fmt.Sprintf("%d: %s", i+1, d.Error))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%.1f\t%s\n",
			i+1, d.Step, status, or(d.Code, "-"), or(d.Retry, "-"), or(d.Receipt, "-"), d.Millis, excerpt(d.Body))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range errs {
		if _, err := fmt.Fprintln(out, e); err != nil {
			return err
		}
	}
	return nil
}

// excerpt keeps a body to one short, printable line.
func excerpt(body string) string {
	const most = 60
	body = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, body)
	if runes := []rune(body); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return body
}
