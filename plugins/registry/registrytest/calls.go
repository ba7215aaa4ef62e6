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
	past, cancel := context.WithDeadline(ctx, passed())
	defer cancel()
	for what, call := range map[string]func() error{
		"Search":  func() error { _, err := r.Search(past, registry.Query{}); return err },
		"Resolve": func() error { _, err := r.Resolve(past, ref(all[0].Name, "")); return err },
	} {
		err := within(slack, what+" with a deadline that has passed", call)
		if err == nil || errors.Is(err, plugins.ErrNotFound) || errors.Is(err, errLate) {
			return fmt.Errorf("%s must return an error other than not found when its deadline has passed; it returned: %w", what, errors.Join(err))
		}
	}
	return nil
}

// passed is a deadline that has passed.
func passed() time.Time { return time.Now().Add(-time.Second) }

// errLate is the error of a call that did not return.
var errLate = errors.New("it did not return in time")

// within returns the error of a call, or errLate when it takes longer than limit.
func within(limit time.Duration, what string, call func() error) error {
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-returned:
		return err
	case <-timer.C:
		return fmt.Errorf("%s: %w, %s", what, errLate, limit)
	}
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
