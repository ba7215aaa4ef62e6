package kit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Property is a demand of a contract on every history of a kind, not on one case. S is what it is tried on: the
// implementation, with everything that the kit may do to it.
type Property[S any] struct {
	// Name is the property as a sentence: "every answer is one that the model allows".
	Name string
	// Sentences are what the property rests on: sentences of the .proto files of the kind, or parts of them. A
	// failure cites one of them. A kit demands nothing that its contract does not say.
	Sentences []string
	// Try returns nil if the property held in every history that it tried, a *Failure if it did not, and what
	// NotJudged or NotApplicable returns. Any other error is a failure too.
	Try func(ctx context.Context, trial *Trial, subject S) error
}

// Failure is an answer that the contract does not allow.
type Failure struct {
	History  []string // the shortest history that was found to fail, one step a line; may be empty
	Answered string   // what the plugin answered, in the last step
	Demanded string   // what it must answer
	Sentence string   // the sentence of the contract that says so
	Recorded string   // a file with the whole history; "" for none
}

// Error is the report of the failure, of several lines.
func (f *Failure) Error() string {
	var b strings.Builder
	for i, step := range f.History {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, step)
	}
	fmt.Fprintf(&b, "the plugin:   %s\ndemanded:     %s\nthe contract: %q", f.Answered, f.Demanded, f.Sentence)
	if f.Recorded != "" {
		fmt.Fprintf(&b, "\nrecorded in:  %s", f.Recorded)
	}
	return b.String()
}

// Verdict is how a property went.
type Verdict int

// The verdicts.
const (
	Pass          Verdict = iota
	Fail                  // a history failed
	NotJudged             // the contract demands it, and something that only the author has was missing
	NotApplicable         // the contract does not demand it of this plugin
)

// String is the verdict as reports show it.
func (v Verdict) String() string {
	return [...]string{"pass", "FAIL", "not judged", "not applicable"}[v]
}

// Outcome is how a property went, and why.
type Outcome struct {
	Property string
	Verdict  Verdict
	Err      error    // a *Failure or another error; nil unless the verdict is Fail
	Why      string   // why it was not judged and what the author must supply, or why it does not apply
	Covered  []string // what was tried, and up to which bounds
	Took     time.Duration
}

// verdictError is a verdict that is neither a pass nor a failure.
type verdictError struct {
	verdict Verdict
	why     string
}

func (e *verdictError) Error() string { return e.verdict.String() + ": " + e.why }

// CannotJudge is the error of a property that the contract demands and that could not be tried, or not completely.
// The text says what was missing and what the author must supply.
func CannotJudge(format string, args ...any) error {
	return &verdictError{NotJudged, fmt.Sprintf(format, args...)}
}

// DoesNotApply is the error of a property that the contract does not demand of this plugin: one about an optional
// capability that it does not have.
func DoesNotApply(format string, args ...any) error {
	return &verdictError{NotApplicable, fmt.Sprintf(format, args...)}
}

// Judge tries the property. A panic is a failure, and so is one that cites a sentence on which the property does not
// rest.
func (p Property[S]) Judge(ctx context.Context, trial Trial, subject S) Outcome {
	began := time.Now()
	trial.property = p.Name
	outcome := Outcome{Property: p.Name}
	err := p.try(ctx, &trial, subject)
	outcome.Covered, outcome.Took = trial.covered, time.Since(began)
	if other, ok := errors.AsType[*verdictError](err); ok {
		outcome.Verdict, outcome.Why = other.verdict, other.why
		return outcome
	}
	if failure, ok := errors.AsType[*Failure](err); ok && !slices.Contains(p.Sentences, failure.Sentence) {
		err = fmt.Errorf("the kit is wrong: %q does not rest on %q\n%w", p.Name, failure.Sentence, err)
	}
	if err != nil {
		outcome.Verdict, outcome.Err = Fail, err
	}
	return outcome
}

func (p Property[S]) try(ctx context.Context, trial *Trial, subject S) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return p.Try(ctx, trial, subject)
}
