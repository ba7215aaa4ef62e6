package mcphttp

// Sessions is how many sessions are live in this process.
func (e *Endpoint) Sessions() int { return len(e.live.all()) }
