// Command ropewalk-shim is the program that runs between the server and one app. deploy/shim builds it, and the
// server embeds it: the server's own executable can do the same work, but initializing it takes more memory.
package main

import (
	"os"
	"runtime"

	"github.com/ropewalk/ropewalk/core/process"
)

// The main goroutine stays on the first thread of the process: see process.Shim.
//
//nolint:gochecknoinits // Go promises this only for init
func init() { runtime.LockOSThread() }

func main() { os.Exit(process.Shim(os.Args[1:])) }
