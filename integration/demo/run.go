package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Options are how the demonstration is run.
type Options struct {
	// Gate is the binary with the gate, which is run as `<gate> run --config ...`.
	Gate string
	// App is the command line that runs the counter app; `--db <file>` and `--until-eof` are added.
	App []string
	// Keep leaves the files where they are; the report says where.
	Keep bool
	// Progress is told each step's name when it begins. nil: nobody is.
	Progress func(step string)
}

// Run runs the demonstration. Everything it starts is stopped when it returns, whatever happened. The report
// is never nil; the error says that the story could not be told to its end, not that a condition failed.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	report = &Report{}
	defer func() {
		report.count()
		if err != nil {
			report.Error = err.Error()
		}
	}()
	dir, err := os.MkdirTemp("", "einlass-demo-")
	if err != nil {
		return report, err
	}
	if o.Keep {
		report.Dir = dir
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	l, err := newLab(ctx, o.Gate, o.App, dir)
	if err != nil {
		return report, err
	}
	l.report = report
	if o.Progress != nil {
		l.progress = o.Progress
	}
	defer func() {
		report.Requests = l.sender.requests.Load()
		err = errors.Join(err, l.close())
	}()
	for _, tell := range []func(context.Context, *lab) error{tellRepeats, tellFaults, tellRestarts, tellRefusals} {
		if err := tell(ctx, l); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return report, fmt.Errorf("the story ends early: %w", err)
		}
	}
	return report, nil
}
