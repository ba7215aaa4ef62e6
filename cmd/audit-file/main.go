// Command audit-file is a plugin executable with the built-in audit sink file.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
)

func main() { audit.Serve(file.New()) }
