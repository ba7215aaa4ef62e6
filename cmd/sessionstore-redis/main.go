// Command sessionstore-redis is the built-in redis session store as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

func main() { sessionstore.Serve(redis.New()) }
