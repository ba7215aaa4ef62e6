// Command auth-static runs the built-in static auth adapter as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
)

func main() { auth.Serve(static.New()) }
