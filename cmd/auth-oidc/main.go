// Command auth-oidc runs the built-in oidc auth adapter as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
)

func main() { auth.Serve(oidc.New()) }
