package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// lateAfter is how long notices may remain unread or unwritten before Check reports it. They are read at least every
// second, with or without a notification connection.
const lateAfter = 3 * time.Second

// health tracks whether notices are being read and written.
type health struct {
	mu           sync.Mutex
	readAt       time.Time // when the table was last read to the end
	readErr      error     // the error of the latest attempt
	waitingSince time.Time // when the oldest waiting notice began to wait; zero if none are waiting
	writeErr     error
}

// Check returns core.CodeUnavailable if, for three seconds, notices from other servers have not been read or
// this server's own notices have not been written.
func (c *Cluster) Check() error {
	h := &c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch now := time.Now(); {
	case now.Sub(h.readAt) > lateAfter:
		return late("cannot read notices from other servers", h.readErr)
	case !h.waitingSince.IsZero() && now.Sub(h.waitingSince) > lateAfter:
		return late("cannot write notices for other servers", h.writeErr)
	}
	return nil
}

func late(what string, cause error) error {
	if cause == nil {
		return core.Errorf(core.CodeUnavailable, "%s: the database does not respond", what)
	}
	return fmt.Errorf("%s: %w", what, cause)
}

// readDone records the end of an attempt to read notices.
func (h *health) readDone(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readErr = err
	if err == nil {
		h.readAt = time.Now()
	}
}

// writeBegins records that notices are waiting to be written.
func (h *health) writeBegins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitingSince = time.Now()
}

// writeDone records the end of an attempt to write notices.
func (h *health) writeDone(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writeErr = err
	if err == nil {
		h.waitingSince = time.Time{}
	}
}
