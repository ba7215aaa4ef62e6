// Command sessionstore-memory is a plugin executable with the built-in session store memory.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

func main() { sessionstore.Serve(memory.New()) }
