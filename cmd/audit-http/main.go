// Command audit-http is a plugin executable with the built-in audit sink http.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
)

func main() { audit.Serve(http.New()) }
