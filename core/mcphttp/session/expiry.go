package session

import "time"

// Touch restarts the idle time. It returns false when the session has ended.
func (s *Session) Touch(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return false
	}
	s.record.LastAccessedAt = now // the timer looks at it when it fires
	return true
}

// ExpireAfter calls expired when the session was idle for ttl.
func (s *Session) ExpireAfter(ttl time.Duration, expired func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = time.AfterFunc(ttl, func() {
		if s.expire(ttl) {
			expired()
		}
	})
}

// expire runs when the idle time may be over, and reports whether it is: a request may have come in
// between, and a session with a call in flight is not idle.
func (s *Session) expire(ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := ttl - time.Since(s.record.LastAccessedAt)
	if s.closed {
		return false
	}
	if len(s.calls) > 0 {
		rest = ttl
	}
	if rest > 0 {
		s.idle.Reset(rest)
		return false
	}
	s.expired = true
	return true
}
