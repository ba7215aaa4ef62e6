package framing

import (
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
)

// DiscardLog counts messages that were discarded and logs the 1st, 10th, 100th and so on, so that an
// app which sends many of them does not fill the log.
type DiscardLog struct {
	Logger  hclog.Logger
	App     string
	Message string // of the log line
	count   atomic.Int64
}

// Add counts one message and, where it is due, logs what it was.
func (d *DiscardLog) Add(what string) {
	n := d.count.Add(1)
	for power := int64(1); power <= n; power *= 10 {
		if power == n {
			d.Logger.Warn(d.Message, "app", d.App, "what", what, "times", n)
		}
	}
}

// Count returns how many messages were discarded.
func (d *DiscardLog) Count() int64 { return d.count.Load() }
