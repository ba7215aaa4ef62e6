// Command auth-workos is the built-in auth adapter workos as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
)

func main() { auth.Serve(workos.New()) }
