//go:build linux || darwin

package bolt

import (
	"math"
	"path/filepath"
	"syscall"
)

// free is how many bytes the disk under path has left for an ordinary user.
func free(path string) (bytes int64, known bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &stat); err != nil {
		return 0, false
	}
	size := uint64(stat.Bsize) // its type differs between systems, it is never negative
	if size != 0 && stat.Bavail > math.MaxInt64/size {
		return math.MaxInt64, true
	}
	return int64(stat.Bavail * size), true
}
