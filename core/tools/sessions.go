package tools

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// sessionRegistry holds the open sessions of each workspace, to which the notifications of its apps are delivered.
type sessionRegistry struct {
	mu          sync.RWMutex
	byWorkspace map[string]*workspaceSessions
	requested   map[string]int // by workspace: the lowest log level that stateless requests have asked for
}

// workspaceSessions holds the open sessions of one workspace.
type workspaceSessions struct {
	sessions map[*Session]struct{}
	stop     func()
}

func newSessionRegistry() *sessionRegistry {
	return &sessionRegistry{byWorkspace: map[string]*workspaceSessions{}, requested: map[string]int{}}
}

func (b *sessionRegistry) add(all Apps, s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.byWorkspace[s.workspace]
	if w == nil {
		w = &workspaceSessions{sessions: map[*Session]struct{}{}}
		b.byWorkspace[s.workspace] = w
		w.stop = all.Listen(s.workspace, func(t apps.Notification) { b.deliver(s.workspace, t) })
	}
	w.sessions[s] = struct{}{}
}

func (b *sessionRegistry) remove(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.byWorkspace[s.workspace]
	if w == nil {
		return
	}
	if delete(w.sessions, s); len(w.sessions) == 0 {
		w.stop()
		delete(b.byWorkspace, s.workspace)
	}
}

func (b *sessionRegistry) deliver(workspace string, t apps.Notification) {
	for _, s := range b.open(workspace) {
		s.deliver(t)
	}
}

func (b *sessionRegistry) open(workspace string) []*Session {
	b.mu.RLock()
	defer b.mu.RUnlock()
	w := b.byWorkspace[workspace]
	if w == nil {
		return nil
	}
	all := make([]*Session, 0, len(w.sessions))
	for s := range w.sessions {
		all = append(all, s)
	}
	return all
}

// requestLevel records the log level that a stateless request asks for, and reports whether it is lower than all
// earlier ones. The level remains in force, because the next such request may come at any time.
func (b *sessionRegistry) requestLevel(workspace string, severity int) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.requested[workspace]; before != 0 && before <= severity {
		return false
	}
	b.requested[workspace] = severity
	return true
}

// level returns the lowest level that a client of the workspace has set, or "" if none has.
func (b *sessionRegistry) level(workspace string) string {
	b.mu.RLock()
	least := b.requested[workspace]
	b.mu.RUnlock()
	for _, s := range b.open(workspace) {
		if level := s.level(); level > 0 && (least == 0 || level < least) {
			least = level
		}
	}
	if least == 0 {
		return ""
	}
	return apps.LevelNames()[least-1]
}

// capabilitiesWithoutRoots removes roots from client capabilities, for a caller who may not send any.
func capabilitiesWithoutRoots(capabilities json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(capabilities, &members) != nil {
		return capabilities
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, "roots") }) // decoders ignore case
	raw, _ := json.Marshal(members)                                                                                 // raw messages that were just decoded always marshal
	return raw
}

// rootless answers questions about roots with an empty list, for a caller who may not send roots. The caller may have
// lost that right while the session was open.
type rootless struct{ interact.Asker }

// Ask implements interact.Asker.
func (r rootless) Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	if q.Method == instance.MethodRoots {
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return r.Asker.Ask(ctx, q)
}

// withoutRoots empties the roots in input responses. Invalid responses are left unchanged.
func withoutRoots(responses json.RawMessage) json.RawMessage {
	return orUnchanged(responses, func() (json.RawMessage, error) {
		return rawjson.Edit(responses, func(_ string, answer json.RawMessage) (json.RawMessage, error) {
			var members map[string]json.RawMessage
			_ = json.Unmarshal(answer, &members) // only an object can have roots
			for name := range members {
				if strings.EqualFold(name, "roots") {
					return json.RawMessage(`{"roots":[]}`), nil
				}
			}
			return nil, nil
		})
	})
}
