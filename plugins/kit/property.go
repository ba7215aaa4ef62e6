package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/internal/status"
	"github.com/ropewalk/ropewalk/proto"
)

// Property is a requirement that a contract makes of every history of a kind, rather than of a single case. S is the
// subject: the implementation, and everything that the kit may do to it.
type Property[S any] struct {
	// Name is the property as a sentence: "every answer is one that the model allows".
	Name string
	// Sentences are the basis of the property: text of the contract, such as the texts that Contract returns. A failure
	// cites a part of it. A kit requires nothing that its contract does not say.
	Sentences []string
	// Try returns if the property held in every history that it tried. Otherwise Must ends it: with a *Failure, or with
	// the result of CannotJudge or DoesNotApply. Any other error is a failure too.
	Try func(ctx context.Context, trial *Trial, subject S)
}

// Contract returns the text of a kind's .proto file and of the one for all kinds, each on one line and without comment
// markers.
func Contract(kind string) (texts []string) {
	for _, name := range []string{kind, "plugin"} {
		raw, err := proto.Files().ReadFile("ropewalk/" + name + "/v1/" + name + ".proto")
		if err != nil {
			panic(err)
		}
		texts = append(texts, strings.Join(strings.Fields(strings.ReplaceAll(string(raw), "//", " ")), " "))
	}
	return texts
}

// Says reports whether a sentence is part of the basis of the property.
func (p Property[S]) Says(sentence string) bool {
	return slices.ContainsFunc(p.Sentences, func(text string) bool { return strings.Contains(text, sentence) })
}

// Failure is an answer that the contract does not allow.
type Failure struct {
	History  []string // the shortest failing history, one step per line; may be empty
	Failing  int      // which step failed, counted from 1; 0 if it is the last
	Answered string   // what the plugin returned in that step
	Demanded string   // what it must return
	Sentence string   // the sentence of the contract that requires it
	Recorded string   // a file with the whole history; may be ""
}

// NewFailure returns a failure in the last step of a history, which may be empty.
func NewFailure(answered, demanded, sentence string, history ...string) *Failure {
	return &Failure{History: history, Answered: answered, Demanded: demanded, Sentence: sentence}
}

// Error returns the report of the failure, which has several lines.
func (f *Failure) Error() string {
	var b strings.Builder
	for i, step := range f.History {
		mark := " "
		if failing := cmp.Or(f.Failing, len(f.History)); i+1 == failing {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s%3d  %s\n", mark, i+1, step)
	}
	fmt.Fprintf(&b, "the plugin:   %s\ndemanded:     %s\nthe contract: %q", f.Answered, f.Demanded, f.Sentence)
	if f.Recorded != "" {
		fmt.Fprintf(&b, "\nrecorded in:  %s", f.Recorded)
	}
	return b.String()
}

// ErrorText returns the error of a call as reports show it: INTERNAL "the database failed".
func ErrorText(err error) string { return status.Text(err) }

// ended is the panic by which Must ends a property.
type ended struct{ error }

// Must ends the property with err, as t.Fatal ends a test, unless err is nil. It may be called only by functions that
// Judge, AtOnce, Explore and Catch call, and only on the same goroutine.
func Must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Got is Must for a call that also returns a value.
func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// Reject ends the property with the Failure of an answer, the last of a history.
func Reject(answered, demanded, sentence string, history ...string) {
	Must(NewFailure(answered, demanded, sentence, history...))
}

// After prepends steps to the history of a Failure. It returns any other error as it is.
func After(err error, steps ...string) error {
	if failure, ok := errors.AsType[*Failure](err); ok {
		failure.History = append(slices.Clone(steps), failure.History...)
		if failure.Failing > 0 {
			failure.Failing += len(steps)
		}
	}
	return err
}

// Citing replaces the sentence of a Failure, if it is one of those given, or whatever it is if none are given. It returns
// any other error as it is.
func Citing(err error, sentence string, instead ...string) error {
	if failure, ok := errors.AsType[*Failure](err); ok && (len(instead) == 0 || slices.Contains(instead, failure.Sentence)) {
		failure.Sentence = sentence
	}
	return err
}

// Catch runs a part of a property and returns the error with which Must ended it.
func Catch(part func()) (err error) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case ended:
			err = value.error
		default:
			panic(value)
		}
	}()
	part()
	return nil
}

// Verdict is the result of a property.
type Verdict int

// The verdicts.
const (
	Pass          Verdict = iota
	Fail                  // a history failed
	NotJudged             // the contract requires it, but something that only the author can supply is missing
	NotApplicable         // the contract does not require it of this plugin
)

// String returns the verdict as shown in reports.
func (v Verdict) String() string {
	return [...]string{"pass", "FAIL", "not judged", "not applicable"}[v]
}

// Outcome is the result of a property, and the reason.
type Outcome struct {
	Property string
	Verdict  Verdict
	Err      error    // a *Failure or another error; nil unless Verdict is Fail
	Why      string   // why it was not judged and what the author must supply, or why it does not apply
	Covered  []string // what was tried, and within which limits
	Took     time.Duration
}

// verdictError is a verdict other than pass or failure.
type verdictError struct {
	verdict Verdict
	why     string
}

func (e *verdictError) Error() string { return e.verdict.String() + ": " + e.why }

// CannotJudge returns the error for a property that the contract requires but that could not be tried, or not
// completely. The text says what is missing and what the author must supply.
func CannotJudge(format string, args ...any) error {
	return &verdictError{NotJudged, fmt.Sprintf(format, args...)}
}

// DoesNotApply returns the error for a property that the contract does not require of this plugin, because it
// concerns an optional capability that the plugin lacks.
func DoesNotApply(format string, args ...any) error {
	return &verdictError{NotApplicable, fmt.Sprintf(format, args...)}
}

// Judge tries the property. A panic is a failure, and so is a Failure that cites something that Sentences do not say.
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
	if failure, ok := errors.AsType[*Failure](err); ok && !p.Says(failure.Sentence) {
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
	return Catch(func() { p.Try(ctx, trial, subject) })
}
