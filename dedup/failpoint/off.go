//go:build !einlass_failpoints

package failpoint

// Enabled tells whether this build has failpoints.
const Enabled = false

// Hit does nothing.
func Hit(string) {}

// HitAfter does nothing.
func HitAfter(string, func() error) {}
