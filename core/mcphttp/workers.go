package mcphttp

import "context"

// maxIdle is how many goroutines wait for calls.
const maxIdle = 64

// workers run calls on goroutines that are used again. The stack of a new goroutine is smaller than a call needs, and
// growing it costs more than a tenth of the CPU of the whole call (BenchmarkWorkers).
type workers struct {
	calls chan *call    // received by those that are idle
	idle  chan struct{} // holds a token for each of them
}

func newWorkers() workers {
	return workers{calls: make(chan *call), idle: make(chan struct{}, maxIdle)}
}

// start runs a call on a goroutine. The goroutines end with ctx.
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
			return // enough of them wait
		}
		select {
		case k = <-w.calls:
			<-w.idle
		case <-ctx.Done():
			return
		}
	}
}
