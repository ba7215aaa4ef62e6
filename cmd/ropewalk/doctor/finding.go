package doctor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// The results of a check.
const (
	ok      = "ok"
	warning = "warning"
	failed  = "error"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warning or error
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Report contains all findings.
type Report struct {
	Version  string    `json:"version"`
	Findings []Finding `json:"findings"`
}

func (r *Report) add(check, result, detail, remedy string) {
	if result == ok {
		remedy = ""
	}
	detail = strings.ReplaceAll(strings.TrimSpace(detail), "\n", "; ") // joined errors
	r.Findings = append(r.Findings, Finding{check, result, detail, remedy})
}

// addError adds a finding for a check that failed with an error. A check that timed out proves nothing.
func (r *Report) addError(check, what string, err error, remedy string) {
	if timedOut(err) {
		r.add(check, warning, what+" did not respond in time", "run doctor again when this machine is less busy; if nothing changes, "+remedy)
		return
	}
	if what != "" {
		what += ": "
	}
	r.add(check, failed, what+err.Error(), remedy)
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) || strings.Contains(err.Error(), context.DeadlineExceeded.Error())
}

// reported reports whether a check already has a finding.
func (r *Report) reported(check string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == check })
}

// failed reports whether a check has failed.
func (r *Report) failed(check string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == check && f.Result == failed })
}

// worst returns the worst result.
func (r *Report) worst() string {
	worst := ok
	for _, f := range r.Findings {
		if f.Result == failed || f.Result == warning && worst == ok {
			worst = f.Result
		}
	}
	return worst
}

// print writes a line for each finding. If several consecutive findings of one check have the same remedy, it is
// printed once, after them.
func (r *Report) print(o *cli.Output) {
	for i, f := range r.Findings {
		o.Line("%s %-15s %s", o.State(f.Result)+strings.Repeat(" ", 8-len(f.Result)), f.Check, o.Text(f.Detail)) // colors have no width
		next := i + 1
		repeated := next < len(r.Findings) && r.Findings[next].Check == f.Check && r.Findings[next].Remedy == f.Remedy
		if f.Remedy != "" && !repeated {
			o.Line("%-8s %-15s → %s", "", "", o.Text(f.Remedy))
		}
	}
}
