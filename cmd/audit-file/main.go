// Command audit-file is the built-in audit sink file as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
)

func main() { audit.Serve(file.New()) }
