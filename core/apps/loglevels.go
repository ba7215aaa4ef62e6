package apps

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/link"
)

// appTimeout is how long an app may take to accept a log level or a subscription.
const appTimeout = 5 * time.Second

// LogLevels returns the levels of log messages, least severe first (RFC 5424, by their names in MCP).
func LogLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// logLevels is the log level of the apps of each workspace: the least severe that a session there wants.
type logLevels struct {
	mu          sync.Mutex
	byWorkspace map[string]string
}

func newLogLevels() *logLevels { return &logLevels{byWorkspace: map[string]string{}} }

func (l *logLevels) of(workspace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byWorkspace[workspace]
}

// SetLogLevel sets the log level of the apps of a workspace, also of those that start later.
func (m *Manager) SetLogLevel(ctx context.Context, workspace, level string) {
	if !slices.Contains(LogLevels(), level) {
		return
	}
	m.logLevels.mu.Lock()
	before := m.logLevels.byWorkspace[workspace]
	m.logLevels.byWorkspace[workspace] = level
	m.logLevels.mu.Unlock()
	if before == level {
		return
	}
	var setting sync.WaitGroup
	defer setting.Wait()
	for _, a := range m.in(workspace) {
		for _, in := range a.instances() {
			setting.Go(func() { m.logLevels.apply(ctx, a, in) })
		}
	}
}

// levelSetter is an instance as far as log levels are concerned.
type levelSetter interface {
	Info() link.Info
	Call(ctx context.Context, r link.Request) (json.RawMessage, error)
}

// instances returns all instances of the app that can be called.
func (a *app) instances() (all []levelSetter) {
	for _, in := range a.dialog.Instances() {
		all = append(all, in)
	}
	if in := a.current(); in != nil {
		all = append(all, in)
	}
	return all
}

// apply sets the log level of one instance. Without a level the app decides itself.
func (l *logLevels) apply(ctx context.Context, a *app, in levelSetter) {
	level := l.of(a.key.Workspace)
	if info := in.Info(); level == "" || info.Stateless || !info.Offers("logging") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, appTimeout)
	defer cancel()
	params, err := json.Marshal(map[string]string{"level": level})
	if err != nil {
		return
	}
	if _, err := in.Call(ctx, link.Request{Method: "logging/setLevel", Params: params}); err != nil && ctx.Err() == nil {
		a.log.Debug("app did not accept a log level", "level", level, "error", err)
	}
}
