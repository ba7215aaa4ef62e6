// Command sessionstore-memory is the built-in session store memory as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

func main() { sessionstore.Serve(memory.New()) }
