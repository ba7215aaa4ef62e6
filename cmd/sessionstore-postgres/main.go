// Command sessionstore-postgres is the built-in session store postgres as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
)

func main() { sessionstore.Serve(postgres.New()) }
