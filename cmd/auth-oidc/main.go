// Command auth-oidc is a plugin executable with the built-in auth adapter oidc.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
)

func main() { auth.Serve(oidc.New()) }
