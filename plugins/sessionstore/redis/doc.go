// Package redis is a session store in Redis (7 or newer, or Valkey), which all servers of a deployment share. Redis may
// be one server, a cluster, or a set of servers with sentinels.
//
// Each session is one string key: its last access in milliseconds, a space, and the record as JSON, written with its
// lifetime by one SET. A touch is a script on that one key, so it is atomic and works in a cluster, where each key has
// its own node. Redis itself expires the keys; nothing is listed or scanned. Redis must not evict keys
// (maxmemory-policy noeviction), because an evicted session looks like one that never existed.
package redis
