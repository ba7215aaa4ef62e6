package config

// deriveLimits sets the limits whose default follows from other settings.
func (c *Config) deriveLimits() {
	if _, set := c.places["limits.sessions"]; !set {
		c.Limits.Sessions = max(c.Limits.Sessions, c.MCP.MaxSessions/2)
	}
	c.relaxInDevMode()
}

// relaxInDevMode turns the limits that were not set off in dev mode, where one person uses the server
// alone and tries things out. The sizes of bodies and answers stay.
func (c *Config) relaxInDevMode() {
	if !c.Dev() {
		return
	}
	l := &c.Limits
	for name, value := range map[string]*int{
		"connectionsPerAddress": &l.ConnectionsPerAddress, "sessions": &l.Sessions, "streams": &l.Streams, "chatRuns": &l.ChatRuns,
		"calls": &l.Calls, "callsPerSecond": &l.CallsPerSecond, "tokensPerDay": &l.TokensPerDay,
	} {
		if _, set := c.places["limits."+name]; !set {
			*value = 0
		}
	}
}
