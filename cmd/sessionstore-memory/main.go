// Command sessionstore-memory is the built-in memory session store as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

func main() { sessionstore.Serve(memory.New()) }
