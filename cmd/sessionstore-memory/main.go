// Command sessionstore-memory runs the built-in memory session store as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

func main() { sessionstore.Serve(memory.New()) }
