// Command audit-http is the built-in http audit sink as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
)

func main() { audit.Serve(http.New()) }
