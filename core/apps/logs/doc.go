// Package logs handles what apps write to stderr.
//
// It owns the rotated log file of each app, the last lines of output, which are kept in memory to explain a failed
// start, and the removal of an installation's secrets from both. It does not start processes (process) and does not
// know the state of an app (apps).
package logs
