// Command sessionstore-postgres is a plugin executable with the built-in session store postgres.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
)

func main() { sessionstore.Serve(postgres.New()) }
