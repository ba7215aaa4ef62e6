// Package logging is the server's logger: levels per component that can change at runtime, conventional keys in
// JSON, and durations as text.
//
// It decides how a line is written and which lines are written. What is logged is up to its callers. Components
// are the names that packages give their loggers, such as apps or pluginhost.
package logging
