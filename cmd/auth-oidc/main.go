// Command auth-oidc is the built-in auth adapter oidc as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
)

func main() { auth.Serve(oidc.New()) }
