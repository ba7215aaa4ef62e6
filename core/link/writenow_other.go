//go:build !unix

package link

import "syscall"

// writeNow leaves everything to the writer: pipes of this system are not written without waiting.
func writeNow(syscall.RawConn, []byte) int { return 0 }
