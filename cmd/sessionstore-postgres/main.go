// Command sessionstore-postgres is the built-in postgres session store as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
)

func main() { sessionstore.Serve(postgres.New()) }
