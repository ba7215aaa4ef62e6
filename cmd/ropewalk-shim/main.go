// Command ropewalk-shim is the program that runs between the server and one app. deploy/shim builds it, and the
// server embeds it: the server's own executable can do the same work, but initializing it takes more memory.
package main

import (
	"fmt"
	"os"

	_ "github.com/ropewalk/ropewalk/core/process" // runs the shim before main
)

func main() {
	_, _ = fmt.Fprintln(os.Stderr, "this program is for internal use by ropewalk")
	os.Exit(2)
}
