// Command auth-static is the static auth adapter as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
)

func main() { auth.Serve(static.New()) }
