package registrytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// slack is how late a call may notice that its deadline has passed.
const slack = 2 * time.Second

func returnsInTime(ctx context.Context, r registry.Registry) error {
	all, err := entries(ctx, r)
	if err != nil {
		return err
	}
	past, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for what, call := range map[string]func() error{
		"Search":  func() error { _, err := r.Search(past, registry.Query{}); return err },
		"Resolve": func() error { _, err := r.Resolve(past, ref(all[0].Name, "")); return err },
	} {
		returned := make(chan error, 1)
		go func() { returned <- call() }()
		timer := time.NewTimer(slack)
		select {
		case err := <-returned:
			timer.Stop()
			if err == nil || errors.Is(err, plugins.ErrNotFound) {
				return fmt.Errorf("%s must return an error other than not found when its deadline has passed; it returned: %w", what, errors.Join(err))
			}
		case <-timer.C:
			return fmt.Errorf("%s must return when its deadline has passed; it did not within %s", what, slack)
		}
	}
	return nil
}

func concurrentCalls(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	if err != nil {
		return err
	}
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			want := found[i%len(found)].pkg
			if _, err := search(ctx, r, registry.Query{}); err != nil {
				errs[i] = err
				return
			}
			got, err := r.Resolve(ctx, ref(want.Name, want.Version))
			if err == nil && got.Name != want.Name {
				err = fmt.Errorf("of concurrent calls, Resolve of %s gave %s", want.Name, got.Name)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
