// Package installed has the commands about the plugins in a home: `ropewalk plugin install`, `remove` and
// `verify`.
//
// It owns their flags and what they print. What they do is in core/pluginhost/install and core/pluginhost.
package installed
