//go:build !windows

package bolt

var platformFull []error
