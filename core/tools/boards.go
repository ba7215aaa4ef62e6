package tools

import (
	"sync"

	"github.com/ropewalk/ropewalk/core/apps/notify"
)

// boards are the open sessions of each workspace, which hear what its apps say by themselves.
type boards struct {
	mu          sync.RWMutex
	byWorkspace map[string]*board
	passing     map[string]int // by workspace, the least severity that requests without a session wanted to see
}

type board struct {
	sessions map[*Session]struct{}
	stop     func()
}

func newBoards() *boards {
	return &boards{byWorkspace: map[string]*board{}, passing: map[string]int{}}
}

func (b *boards) join(all Apps, s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.byWorkspace[s.workspace]
	if one == nil {
		one = &board{sessions: map[*Session]struct{}{}}
		b.byWorkspace[s.workspace] = one
		one.stop = all.Listen(s.workspace, func(t notify.Notification) { b.tell(s.workspace, t) })
	}
	one.sessions[s] = struct{}{}
}

func (b *boards) leave(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.byWorkspace[s.workspace]
	if one == nil {
		return
	}
	if delete(one.sessions, s); len(one.sessions) == 0 {
		one.stop()
		delete(b.byWorkspace, s.workspace)
	}
}

func (b *boards) tell(workspace string, t notify.Notification) {
	for _, s := range b.in(workspace) {
		s.tell(t)
	}
}

func (b *boards) in(workspace string) []*Session {
	b.mu.RLock()
	defer b.mu.RUnlock()
	one := b.byWorkspace[workspace]
	if one == nil {
		return nil
	}
	all := make([]*Session, 0, len(one.sessions))
	for s := range one.sessions {
		all = append(all, s)
	}
	return all
}

// pass notes what a request without a session wants to see, and reports whether that is more than
// any wanted before. It stays wanted: the next such request comes unannounced.
func (b *boards) pass(workspace string, severity int) (more bool) {
	if !b.wouldPass(workspace, severity) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passing[workspace] = severity
	return true
}

// wouldPass is pass without noting anything.
func (b *boards) wouldPass(workspace string, severity int) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	before := b.passing[workspace]
	return before == 0 || before > severity
}

// level is the one that the most curious client of a workspace wants, "" when none set one.
func (b *boards) level(workspace string) string {
	b.mu.RLock()
	least := b.passing[workspace]
	b.mu.RUnlock()
	for _, s := range b.in(workspace) {
		if level := s.level(); level > 0 && (least == 0 || level < least) {
			least = level
		}
	}
	if least == 0 {
		return ""
	}
	return notify.LevelNames()[least-1]
}
