// Command sessionstore-redis runs the built-in redis session store as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

func main() { sessionstore.Serve(redis.New()) }
