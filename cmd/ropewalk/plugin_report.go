package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// report prints the results of a kit's checks as each one ends.
type report struct {
	w                      io.Writer
	passed, failed         int
	unjudged, inapplicable int
	only                   *regexp.Regexp // names of the checks to run; nil for all
	command                string         // repeats the run, without --run
	left                   int            // checks that only leaves out
}

func (r *report) print(format string, args ...any) { _, _ = fmt.Fprintf(r.w, format, args...) }

func (r *report) title(t *trial) {
	r.print("%s plugin %q, version %s (%s)\n", t.who.Kind, t.who.Name, t.who.Version, t.plugin.Path)
	for _, file := range []struct{ what, path string }{{"settings", t.settingsFile}, {"samples", t.samplesFile}} {
		if file.path != "" {
			r.print("%s: %s\n", file.what, file.path)
		}
	}
	r.print("effort %s, seed %d\n\n", t.kit.Effort, t.kit.Seed)
}

// judge checks properties one at a time, so that the report shows each result as soon as it is known.
func judge[S any](ctx context.Context, r *report, properties []kit.Property[S], trial kit.Trial, subject S) {
	for _, property := range properties {
		if ctx.Err() != nil {
			return
		}
		if r.only != nil && !r.only.MatchString(property.Name) {
			r.left++
			continue
		}
		r.outcome(property.Judge(ctx, trial, subject))
	}
}

// outcome prints the result of a property and, for a failure, the command that repeats it.
func (r *report) outcome(o kit.Outcome) {
	details := o.Covered
	switch o.Verdict {
	case kit.Pass:
		r.passed++
	case kit.Fail:
		r.failed++
		details = append(strings.Split(strings.TrimRight(o.Err.Error(), "\n"), "\n"), fmt.Sprintf("again: %s --run '^%s$'", r.command, regexp.QuoteMeta(o.Property)))
	case kit.NotJudged:
		r.unjudged++
		details = append(details, o.Why)
	case kit.NotApplicable:
		r.inapplicable++
		details = append(details, o.Why)
	}
	r.print("%-14s %7.2fs  %s\n", o.Verdict, o.Took.Seconds(), o.Property)
	for _, line := range details {
		r.print("                          %s\n", line)
	}
}

// end prints the totals. The error says that the plugin violates its contract, or that not everything could be
// judged.
func (r *report) end() error {
	if r.left > 0 {
		r.print("\n%d properties were left out by --run: they were not checked.\n", r.left)
	}
	r.print("\n%d passed, %d failed, %d not judged, %d not applicable.\n", r.passed, r.failed, r.unjudged, r.inapplicable)
	switch {
	case r.failed > 0:
		return fmt.Errorf("the plugin does not keep its contract: %d properties failed", r.failed)
	case r.unjudged > 0:
		return cli.NotJudged(fmt.Errorf("%d properties could not be judged: supply what the report says and run again", r.unjudged))
	}
	return nil
}
