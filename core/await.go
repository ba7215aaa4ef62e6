package core

import "context"

// Await calls wait, and returns when it does. If ctx ends first, it returns the cause, and wait continues.
func Await(ctx context.Context, wait func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
