// Command auth-oidc is the oidc auth adapter as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
)

func main() { auth.Serve(oidc.New()) }
