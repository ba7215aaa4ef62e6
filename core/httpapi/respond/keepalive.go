package respond

import (
	"time"

	"github.com/ropewalk/ropewalk/core/stream"
)

// KeepAlive writes a comment at the given interval until the returned function is called.
func KeepAlive(w *stream.Writer, every time.Duration) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if w.Comment() != nil {
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		<-over
	}
}
