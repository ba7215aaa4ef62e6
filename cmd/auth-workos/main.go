// Command auth-workos runs the built-in workos auth adapter as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
)

func main() { auth.Serve(workos.New()) }
