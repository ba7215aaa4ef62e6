package mcp

import (
	"sync"
)

// sharedSession counts the questions of calls that share a session. A question of one call may arrive on the
// stream of another.
type sharedSession struct {
	mu    sync.Mutex
	asked map[string]int // number of questions by nonce
}

// add registers a call by its text.
func (p *sharedSession) add(nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[nonce] = 0
}

// countQuestion counts a question, and reports whether it belongs to a call in this session.
func (p *sharedSession) countQuestion(nonce string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.asked[nonce]
	p.asked[nonce]++
	return ours
}

// questions returns how many questions the call with this text got.
func (p *sharedSession) questions(nonce string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[nonce]
}
