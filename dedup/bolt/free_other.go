//go:build !linux && !darwin

package bolt

// free cannot tell here.
func free(string) (bytes int64, known bool) { return 0, false }
