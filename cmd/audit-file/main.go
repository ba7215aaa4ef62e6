// Command audit-file is the built-in file audit sink as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
)

func main() { audit.Serve(file.New()) }
