// Package logging is the server's logger: levels per component that change while it runs, the usual
// keys in JSON, and durations as text.
//
// It owns how a line is written and which lines are. It does not own what is logged. Components are the
// names that packages give their loggers, such as apps or pluginhost.
package logging
