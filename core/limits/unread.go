package limits

import (
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// unread counts the bytes of responses that clients have not read yet. Each principal may use a quarter of the limit.
type unread struct {
	mu   sync.Mutex
	used int
	by   map[string]int
}

// HoldResponse counts a response of n bytes that a principal has not read yet. The caller must call release exactly
// once, when the response has been read. The error is core.CodeRateLimited if the principal, or all principals
// together, have too many unread bytes. A response larger than a principal's share counts as exactly one share, so its
// size alone never causes an error.
func (l *Limits) HoldResponse(principal string, n int) (release func(), err error) {
	if l == nil || l.settings.UnreadBytes == 0 {
		return func() {}, nil
	}
	u := &l.unread
	share := max(1, l.settings.UnreadBytes/4)
	n = min(n, share)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used+n > l.settings.UnreadBytes || u.by[principal]+n > share {
		return nil, core.Errorf(core.CodeRateLimited, "too many large responses have not been read yet; the limit is %d MiB per user", share>>20).WithRetryAfter(retryAfter)
	}
	u.used += n
	u.by[principal] += n
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.used -= n
		if u.by[principal] -= n; u.by[principal] == 0 {
			delete(u.by, principal)
		}
	}, nil
}
