// Package logging is the server's logger: levels per component that can change at runtime, conventional keys in
// JSON, and durations as text.
//
// It decides which lines are written, and how. Its callers decide what to log. A component is the name that a package
// gives its logger, such as apps or pluginhost.
package logging
