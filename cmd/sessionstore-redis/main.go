// Command sessionstore-redis is a plugin executable with the built-in session store redis.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

func main() { sessionstore.Serve(redis.New()) }
