// Command sessionstore-postgres runs the built-in postgres session store as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
)

func main() { sessionstore.Serve(postgres.New()) }
