//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import "os"

// unlock has nothing to do: closing gives the lock back.
func unlock(*os.File) {}
