package doctor

import (
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

// Report is all findings.
type Report struct {
	Version  string    `json:"version"`
	Findings []Finding `json:"findings"`
}

func (r *Report) add(check, result, detail, remedy string) {
	if result == ok {
		remedy = ""
	}
	r.Findings = append(r.Findings, Finding{check, result, detail, remedy})
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

func (r *Report) print(o *cli.Output) {
	for _, f := range r.Findings {
		o.Line("%-8s %-15s %s", o.State(f.Result), f.Check, o.Text(f.Detail))
		if f.Remedy != "" {
			o.Line("%-8s %-15s → %s", "", "", o.Text(f.Remedy))
		}
	}
}
