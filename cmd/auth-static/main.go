// Command auth-static is a plugin executable with the built-in auth adapter static.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
)

func main() { auth.Serve(static.New()) }
