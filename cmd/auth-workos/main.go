// Command auth-workos is a plugin executable with the built-in auth adapter workos.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
)

func main() { auth.Serve(workos.New()) }
