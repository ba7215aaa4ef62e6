// Package install brings plugins into the home of a server and takes them out again, for `ropewalk plugin
// install` and `ropewalk plugin remove`.
//
// It owns where the file of a plugin comes from (a file, a folder, a URL, an OCI
// registry, a list of plugins), the checks of
// its checksum, its signature and its version, and the record of them in plugins.lock. It does not own the format of that
// file nor the start of plugins: package pluginhost compares each plugin with its record whenever it starts
// one.
//
// Everything happens in a staging folder beside the plugins. The file of a plugin is replaced in one step,
// when nothing can be refused any more; a failed installation leaves nothing behind.
package install
