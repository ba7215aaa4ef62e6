package mcp

import (
	"sync"
)

// sharedSession is the talks that share a session. What one of them is asked may come on another's stream.
type sharedSession struct {
	mu    sync.Mutex
	asked map[string]int // how often, by nonce
}

func (p *sharedSession) add(nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[nonce] = 0
}

// countQuestion notes a question, and reports whether it is for one of these.
func (p *sharedSession) countQuestion(nonce string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.asked[nonce]
	p.asked[nonce]++
	return ours
}

func (p *sharedSession) questions(nonce string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[nonce]
}
