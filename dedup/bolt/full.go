package bolt

import (
	"errors"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// isFull tells the errors of a file that cannot grow or be written, which pass, from those that leave its content
// unknown.
func isFull(err error) bool {
	for _, e := range fullErrors {
		if errors.Is(err, e) || failedToGrow(err, e) {
			return true
		}
	}
	return false
}

var fullErrors = append([]error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, berrors.ErrMaxSizeReached,
}, platformFull...)

// failedToGrow recognizes the one place where bbolt (1.5.0, DB.grow) keeps of a cause only its text. Nothing of
// the transaction is written yet there.
func failedToGrow(err, cause error) bool {
	text := err.Error()
	return (strings.HasPrefix(text, "file resize error: ") || strings.HasPrefix(text, "file sync error: ")) &&
		strings.HasSuffix(text, ": "+cause.Error())
}
