//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"os"
	"syscall"
)

// unlock gives back the lock that a panicking bbolt.Open has left. Closing is not enough: the mapping it has left
// too keeps the open file, and so the lock, alive.
func unlock(file *os.File) {
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
}
