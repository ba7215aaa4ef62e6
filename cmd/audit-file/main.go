// Command audit-file runs the built-in file audit sink as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
)

func main() { audit.Serve(file.New()) }
