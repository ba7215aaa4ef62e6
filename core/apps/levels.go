package apps

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// levelPatience is how long an app may take to be told how much it is to log.
const levelPatience = 5 * time.Second

// LogLevels are the levels of log messages, least severe first (RFC 5424, as MCP names them).
func LogLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// levels is how much the apps of each workspace are to log: as much as the most curious session
// there wants to see.
type levels struct {
	mu          sync.Mutex
	byWorkspace map[string]string
}

func newLevels() *levels { return &levels{byWorkspace: map[string]string{}} }

func (l *levels) of(workspace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byWorkspace[workspace]
}

// SetLogLevel tells the apps of a workspace, those that start later too, how much to log.
func (y *Manager) SetLogLevel(ctx context.Context, workspace, level string) {
	if !slices.Contains(LogLevels(), level) {
		return
	}
	y.levels.mu.Lock()
	before := y.levels.byWorkspace[workspace]
	y.levels.byWorkspace[workspace] = level
	y.levels.mu.Unlock()
	if before == level {
		return
	}
	var telling sync.WaitGroup
	defer telling.Wait()
	for _, a := range y.in(workspace) {
		conns := y.annexes.of(func(k annexKey) bool { return k.app == a })
		if conn := a.conn(); conn != nil {
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			telling.Go(func() { y.levels.apply(ctx, a, conn) })
		}
	}
}

// apply tells one instance what its workspace wants logged. Without a level it decides itself.
func (l *levels) apply(ctx context.Context, a *app, conn instance) {
	level := l.of(a.key.workspace)
	if info := conn.Info(); level == "" || info.Stateless || !info.Offers("logging") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, levelPatience)
	defer cancel()
	params, err := json.Marshal(map[string]string{"level": level})
	if err != nil {
		return
	}
	if _, err := conn.Call(ctx, "logging/setLevel", params, nil); err != nil && ctx.Err() == nil {
		a.log.Debug("An app did not take a log level", "level", level, "error", err)
	}
}
