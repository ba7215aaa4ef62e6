package tools

import (
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// stamps tells the time as events do, and writes it once for each millisecond: a busy server has many
// calls in one.
type stamps struct{ last atomic.Pointer[stamp] }

type stamp struct {
	at   int64 // Unix milliseconds
	text string
}

func (s *stamps) now() string {
	now := time.Now()
	last := s.last.Load()
	if last == nil || last.at != now.UnixMilli() {
		last = &stamp{now.UnixMilli(), core.Timestamp(now)}
		s.last.Store(last)
	}
	return last.text
}
