// Command sessionstore-redis is the built-in session store redis as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

func main() { sessionstore.Serve(redis.New()) }
