package mcphttp

import "context"

// maxIdle is the maximum number of goroutines that wait for calls.
const maxIdle = 64

// workers runs calls on reusable goroutines. The stack of a new goroutine is smaller than a call needs, and growing it
// costs more than a tenth of the CPU time of the whole call (BenchmarkWorkers).
type workers struct {
	calls chan *call    // received by idle goroutines
	idle  chan struct{} // holds a token for each idle goroutine
}

func newWorkers() workers {
	return workers{calls: make(chan *call), idle: make(chan struct{}, maxIdle)}
}

// start runs a call on an idle or a new goroutine. The goroutines end with ctx.
func (w workers) start(ctx context.Context, k *call, run func(*call)) {
	select {
	case w.calls <- k:
	default:
		go w.work(ctx, k, run)
	}
}

func (w workers) work(ctx context.Context, k *call, run func(*call)) {
	for {
		run(k)
		select {
		case w.idle <- struct{}{}:
		default:
			return // enough goroutines are waiting
		}
		select {
		case k = <-w.calls:
			<-w.idle
		case <-ctx.Done():
			return
		}
	}
}
