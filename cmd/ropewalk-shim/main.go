// Command ropewalk-shim is the program that runs between the server and one app. deploy/shim builds it, and the
// server embeds it: the server's own executable can do the same work, but initializing it takes more memory.
package main

import (
	"os"

	"github.com/ropewalk/ropewalk/core/process"
)

func main() { os.Exit(process.Shim(os.Args[1:])) }
