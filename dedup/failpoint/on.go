//go:build einlass_failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Enabled tells whether this build has failpoints.
const Enabled = true

const variable = "EINLASS_FAILPOINT"

var armed, record, left = parse(os.Getenv(variable))

// parse reads the variable. What it does not understand ends the process: a test that kills nobody proves nothing.
func parse(text string) (armed string, record bool, left *atomic.Int64) {
	left = new(atomic.Int64)
	switch text {
	case "":
		return "", false, left
	case "record":
		return "", true, left
	}
	name, times, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(times, 10, 64)
	if err != nil || n < 1 || !slices.Contains(All, name) {
		fmt.Fprintf(os.Stderr, "%s=%s is neither POINT:N nor record; the points are %s\n", variable, text, strings.Join(All, " "))
		os.Exit(2)
	}
	left.Store(n)
	return name, false, left
}

// Hit passes a point.
func Hit(name string) { HitAfter(name, nil) }

// HitAfter passes a point whose process is to be killed only after one thing more, such as a flush.
func HitAfter(name string, last func() error) {
	switch {
	case record:
		note(name)
	case name == armed && left.Add(-1) == 0:
		if last != nil {
			_ = last()
		}
		kill()
	}
}

func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // it may take a moment, in which nothing must go on from here
}

var passed sync.Map

func note(name string) {
	if _, known := passed.LoadOrStore(name, true); !known {
		fmt.Fprintln(os.Stderr, "passed "+name)
	}
}
