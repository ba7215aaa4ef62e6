// Command audit-http is the built-in audit sink http as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
)

func main() { audit.Serve(http.New()) }
