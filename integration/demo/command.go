package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/einlass/einlass/integration/demo/counter"
)

// runWithin is when a run that hangs is given up.
const runWithin = 3 * time.Minute

// Command builds the subcommand `demo`. It can stand under any parent: it runs its app by the path by which it
// was called itself.
func Command() *cobra.Command {
	var o Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo [--json] [--keep] [--gate <binary>]",
		Short: "Show the gate at work, with a real app and real faults",
		Long: `Show the gate at work: this starts a gate and a small app with a SQLite file, both as processes of their own
on free ports of 127.0.0.1, and sends signed webhooks: first deliveries, repeats, conflicts, parallel ones, forged
and malformed ones. Meanwhile the app fails, answers get lost, senders hang up and the gate is killed.

After each step the effects are read from the app's SQLite file and judged. The exit status is 0 only if every
condition holds. It takes about twenty seconds and leaves nothing behind.`,
		Example: `  einlass webhook-gate demo
  einlass webhook-gate demo --json | jq .failed
  einlass webhook-gate demo --keep --gate ./caddy-with-einlass`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			return runCommand(cmd, o, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	flags.BoolVar(&o.Keep, "keep", false, "keep the files: config, logs, receipts, the app's database")
	flags.StringVar(&o.Gate, "gate", "", "the binary to run as the gate (default: this one)")
	cmd.AddCommand(appCommand())
	return cmd
}

func runCommand(cmd *cobra.Command, o Options, asJSON bool) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	if o.Gate == "" {
		o.Gate = self
	}
	path := strings.Fields(cmd.CommandPath())[1:] // without the root's name
	o.App = append(append([]string{self}, path...), "app")
	progress := newProgress(cmd.ErrOrStderr())
	o.Progress = progress.show

	ctx, stop := untilSignal(cmd)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, runWithin, fmt.Errorf("not done within %v", runWithin))
	defer cancel()
	report, err := Run(ctx, o)
	progress.clear()
	if asJSON {
		err = errors.Join(err, report.writeJSON(cmd.OutOrStdout()))
	} else if len(report.Steps) > 0 {
		err = errors.Join(err, report.writeTable(cmd.OutOrStdout()))
	}
	if err == nil && !report.holds() {
		err = fmt.Errorf("%d of %d conditions do not hold", report.Failed, report.Conditions)
	}
	return err
}

// appCommand is the counter app as a process of its own. It is not for people, who would run it without a gate.
func appCommand() *cobra.Command {
	var db string
	var untilEOF bool
	cmd := &cobra.Command{
		Use:    "app --db <file>",
		Short:  "Run the demonstration's app",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			ctx, stop := untilSignal(cmd)
			defer stop()
			if untilEOF {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go func() {
					_, _ = io.Copy(io.Discard, cmd.InOrStdin())
					cancel()
				}()
			}
			return counter.Serve(ctx, db, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&db, "db", "", "the SQLite file")
	cmd.Flags().BoolVar(&untilEOF, "until-eof", false, "end when standard input ends: when the parent is gone")
	if err := cmd.MarkFlagRequired("db"); err != nil {
		panic(err) // the flag stands two lines above
	}
	return cmd
}

// untilSignal is a context that ends with Ctrl-C, SIGTERM or the terminal.
func untilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
