// Package installed contains the commands for the plugins in a home: `ropewalk plugin install`, `remove` and
// `verify`.
//
// It defines their flags and output. The work is done in core/pluginhost/install and core/pluginhost.
package installed
