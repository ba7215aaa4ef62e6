// Command auth-workos is the workos auth adapter as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
)

func main() { auth.Serve(workos.New()) }
