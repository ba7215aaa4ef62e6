package kit

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// Check is one promise of a contract. S is what it is checked on: the implementation, or a struct
// that holds it beside what the check needs to know.
type Check[S any] struct {
	// Name is the promise as a sentence: "a session that was deleted is not found".
	Name string
	// Run returns nil when the promise holds. Its error is a sentence that tells the author what
	// was done, what came back and what had to. A check leaves nothing behind that disturbs
	// another: it uses ids of its own, and may run twice against the same backend.
	Run func(ctx context.Context, subject S) error
}

// Result is how one check went.
type Result struct {
	Name string
	Err  error // nil when the promise holds
	Took time.Duration
}

// timeout is what one check may take, 30 seconds.
const timeout = 30 * time.Second

// Run runs the checks in order, each with its own deadline. A check that panics has failed.
func Run[S any](ctx context.Context, checks []Check[S], subject S) []Result {
	results := make([]Result, 0, len(checks))
	for _, check := range checks {
		began := time.Now()
		err := runOne(ctx, check, subject)
		results = append(results, Result{Name: check.Name, Err: err, Took: time.Since(began)})
	}
	return results
}

func runOne[S any](ctx context.Context, check Check[S], subject S) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the implementation panicked: %v\n%s", value, debug.Stack())
		}
	}()
	return check.Run(ctx, subject)
}

// Failf makes the error of a check: a sentence that may begin with the name of a method.
func Failf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Failed returns the names of the checks that failed, in order.
func Failed(results []Result) []string {
	var names []string
	for _, r := range results {
		if r.Err != nil {
			names = append(names, r.Name)
		}
	}
	return names
}
