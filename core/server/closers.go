package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// closers closes what was started, in reverse order.
type closers struct {
	mu   sync.Mutex
	list []closer
}

type closer struct {
	name  string
	close func(context.Context) error
}

func (c *closers) add(name string, close func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, closer{name, close})
}

// close closes everything that was added, also after an error, and forgets it.
func (c *closers) close(ctx context.Context) error {
	c.mu.Lock()
	list := c.list
	c.list = nil
	c.mu.Unlock()
	var errs []error
	for _, one := range slices.Backward(list) {
		if err := one.close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", one.name, err))
		}
	}
	return errors.Join(errs...)
}
