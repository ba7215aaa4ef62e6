package link

import (
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
)

// tally counts what should not happen and logs it sparsely: the 1st, 10th, 100th time and so on. A
// peer that floods us does not flood the log.
type tally struct {
	log      hclog.Logger
	app      string
	sentence string
	count    atomic.Int64
}

func (t *tally) add(what string) {
	n := t.count.Add(1)
	for power := int64(1); power <= n; power *= 10 {
		if power == n {
			t.log.Warn(t.sentence, "app", t.app, "what", what, "times", n)
		}
	}
}
