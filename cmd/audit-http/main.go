// Command audit-http runs the built-in http audit sink as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
)

func main() { audit.Serve(http.New()) }
