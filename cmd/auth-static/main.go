// Command auth-static is the built-in auth adapter static as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
)

func main() { auth.Serve(static.New()) }
