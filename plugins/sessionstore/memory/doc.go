// Package memory is the session store of a single server: a map in its own process. What it knows
// ends with the process, so every session of a restarted server is not_found. It takes no settings.
//
// It is the default, and the fake that tests of other rooms use.
package memory
