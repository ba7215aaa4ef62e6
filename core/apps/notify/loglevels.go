package notify

import (
	"slices"
	"sync"
)

// LevelNames returns the levels of log messages, least severe first (RFC 5424, by their names in MCP).
func LevelNames() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// LogLevels is the log level of the apps of each workspace: the least severe that a session there wants.
type LogLevels struct {
	mu          sync.Mutex
	byWorkspace map[string]string
}

// NewLogLevels returns LogLevels without any level.
func NewLogLevels() *LogLevels { return &LogLevels{byWorkspace: map[string]string{}} }

// Of returns the level of a workspace, "" for none.
func (l *LogLevels) Of(workspace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byWorkspace[workspace]
}

// Set sets the level of a workspace and reports whether that is a change. A name that is no level
// changes nothing.
func (l *LogLevels) Set(workspace, level string) (changed bool) {
	if !slices.Contains(LevelNames(), level) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed = l.byWorkspace[workspace] != level
	l.byWorkspace[workspace] = level
	return changed
}
