package mcp

import (
	"sync"
)

// sharedSession counts the questions of calls that share a session. A call's question may arrive on the stream of
// another call.
type sharedSession struct {
	mu    sync.Mutex
	asked map[string]int // the number of questions by nonce
}

// add registers a call by the text that it sends.
func (p *sharedSession) add(nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[nonce] = 0
}

// countQuestion counts a question. It reports whether the question belongs to a call in this session.
func (p *sharedSession) countQuestion(nonce string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.asked[nonce]
	p.asked[nonce]++
	return ours
}

// questions returns the number of questions that the call with this text got.
func (p *sharedSession) questions(nonce string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[nonce]
}
