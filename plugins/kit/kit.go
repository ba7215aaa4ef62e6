package kit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Check is one promise of a contract. S is what it is checked on: the implementation, or a struct
// that holds it beside what the check needs to know.
type Check[S any] struct {
	// Name is the promise as a sentence: "a session that was deleted is not found".
	Name string
	// Contract is the sentence of the .proto file that makes the promise, or the part of it that does.
	// A kit demands nothing that its contract does not say.
	Contract string
	// Run returns nil when the promise holds, and the error of Skip when it cannot be checked on this
	// subject. Every other error is a sentence for the author: what was done, what came back and what
	// had to. A check leaves nothing behind that disturbs another: it uses ids of its own, and may run
	// twice against the same backend.
	Run func(ctx context.Context, subject S) error
}

// Result is the outcome of one check.
type Result struct {
	Name    string
	Err     error  // nil when the promise holds, and when the check was skipped
	Skipped string // why the promise could not be checked; "" when it was
	Took    time.Duration
}

// timeout is what one check may take: some start a dozen processes, also on a busy machine. A check that takes
// longer has failed, whatever it returns.
const timeout = time.Minute

// Run runs the checks in order, each with its own deadline. A check that panics has failed.
func Run[S any](ctx context.Context, checks []Check[S], subject S) []Result {
	results := make([]Result, 0, len(checks))
	for _, check := range checks {
		began := time.Now()
		result := Result{Name: check.Name}
		result.Err = runOne(ctx, check, subject)
		if skip, ok := errors.AsType[*skipError](result.Err); ok {
			result.Err, result.Skipped = nil, skip.reason
		}
		result.Took = time.Since(began)
		results = append(results, result)
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
	if err := check.Run(ctx, subject); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the check did not end within %s", timeout)
	}
	return nil
}

// skipError is why a check could not be made.
type skipError struct{ reason string }

func (e *skipError) Error() string { return "skipped: " + e.reason }

// Skip makes the error of a check that cannot be made on this subject. The reason says what is
// missing.
func Skip(format string, args ...any) error { return &skipError{fmt.Sprintf(format, args...)} }

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
