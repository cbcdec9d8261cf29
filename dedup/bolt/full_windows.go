package bolt

import "syscall"

// ERROR_DISK_FULL and ERROR_HANDLE_DISK_FULL.
var platformFull = []error{syscall.Errno(112), syscall.Errno(39)}
