package access

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// staleLogInterval is how often it is logged that the store cannot be read.
const staleLogInterval = 30 * time.Second

// staleLog logs the use of what was read before an outage of the store, though not each time. The zero
// value has logged nothing.
type staleLog struct {
	mu   sync.Mutex
	next time.Time
}

func (l *staleLog) report(log hclog.Logger, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !now.Before(l.next) {
		l.next = now.Add(staleLogInterval)
		log.Warn("the database cannot be read; users and memberships count as they were last read", "error", err)
	}
}
