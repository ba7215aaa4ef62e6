// Package install adds plugins to a server's home and removes them, for `ropewalk plugin install` and `ropewalk
// plugin remove`.
//
// It knows the sources of a plugin's file (a file, a directory, a URL, an OCI registry, a list of plugins),
// checks its checksum, signature and version, and records them in plugins.lock. It does not define the format
// of that file and does not start plugins: package pluginhost compares each plugin with its record whenever it
// starts one.
//
// Everything happens in a staging directory next to the plugins. A plugin's file is replaced in one step, after
// all checks have passed. A failed installation leaves nothing behind.
package install
