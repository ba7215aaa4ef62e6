package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
)

// report prints the result of each of a kit's checks as soon as it is known.
type report struct {
	w                      io.Writer
	passed, failed         int
	unjudged, inapplicable int
	only                   *regexp.Regexp // names of the checks to run; nil for all
	command                string         // repeats the run, without --run
	skipped                int            // number of checks that do not match only
	output                 *kit.Output    // what the plugin wrote
}

func (r *report) print(format string, args ...any) { _, _ = fmt.Fprintf(r.w, format, args...) }

func (r *report) title(t *trial) {
	r.print("%s plugin %q, version %s (%s)\n", t.who.Kind, t.who.Name, t.who.Version, t.plugin.Path)
	for _, file := range []struct{ what, path string }{{"settings", t.settingsFile}, {"samples", t.samplesFile}} {
		if file.path != "" {
			r.print("%s: %s\n", file.what, file.path)
		}
	}
	all := slices.Concat(names(protocoltest.Properties()), t.kits()[t.who.Kind].names, []string{survived().Name})
	all = slices.DeleteFunc(all, func(name string) bool { return r.only != nil && !r.only.MatchString(name) })
	r.print("effort %s, seed %d: %s\n\n", t.kit.Effort, t.kit.Seed, number(len(all)))
}

// judge checks properties one at a time, so that the report shows each result as soon as it is known.
func judge[S any](ctx context.Context, r *report, properties []kit.Property[S], trial kit.Trial, subject S) {
	for _, property := range properties {
		if ctx.Err() != nil {
			return
		}
		if r.only != nil && !r.only.MatchString(property.Name) {
			r.skipped++
			continue
		}
		before := len(r.output.String())
		outcome := property.Judge(ctx, trial, subject)
		r.outcome(outcome, lastError(r.output.String()[before:]))
	}
}

// lastError returns the last error that a plugin logged, or "". Of long texts, such as stacks, it keeps the start and the
// end: the cause is at the start in some languages, and at the end in others.
func lastError(written string) string {
	lines := strings.Split(written, "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) != nil || fields["@level"] != "error" {
			continue
		}
		text := fmt.Sprint(fields["@message"])
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !strings.HasPrefix(name, "@") {
				value := strings.TrimSpace(fmt.Sprint(fields[name]))
				if runes := []rune(value); len(runes) > 400 {
					value = string(runes[:200]) + "…" + string(runes[len(runes)-200:])
				}
				text += fmt.Sprintf(" %s=%q", name, value)
			}
		}
		return text
	}
	return ""
}

// outcome prints the result of a property and, for a failure, the last error that the plugin logged during it and the
// command that repeats it.
func (r *report) outcome(o kit.Outcome, logged string) {
	details := o.Covered
	switch o.Verdict {
	case kit.Pass:
		r.passed++
	case kit.Fail:
		r.failed++
		details = strings.Split(strings.TrimRight(o.Err.Error(), "\n"), "\n")
		if logged != "" {
			details = append(details, "last logged:  "+logged)
		}
		details = append(details, fmt.Sprintf("again: %s --run '^%s$'", r.command, regexp.QuoteMeta(o.Property)))
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

// number returns a number of properties in words.
func number(properties int) string {
	if properties == 1 {
		return "1 property"
	}
	return fmt.Sprint(properties, " properties")
}

// end prints the totals. It returns an error if the plugin violates its contract, or if not everything could be
// judged.
func (r *report) end() error {
	if r.skipped > 0 {
		r.print("\nNot checked, because --run does not match: %s.\n", number(r.skipped))
	}
	r.print("\n%d passed, %d failed, %d not judged, %d not applicable.\n", r.passed, r.failed, r.unjudged, r.inapplicable)
	switch {
	case r.failed > 0:
		return fmt.Errorf("the plugin violates its contract: %s failed", number(r.failed))
	case r.unjudged > 0:
		return cli.NotJudged(fmt.Errorf("%s could not be judged; supply what the report asks for, and run the command again", number(r.unjudged)))
	}
	return nil
}
