package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// report prints how the checks of a kit went, each as it ends.
type report struct {
	w                     io.Writer
	passed, failed, skips int
	only                  *regexp.Regexp // the names of the checks to run; nil for all
	left                  int            // checks that were left out by it
}

func newReport(w io.Writer) *report { return &report{w: w} }

func (r *report) print(format string, args ...any) { _, _ = fmt.Fprintf(r.w, format, args...) }

func (r *report) title(t *trial) {
	r.print("%s plugin %q, version %s (%s)\n", t.who.Kind, t.who.Name, t.who.Version, t.plugin.Path)
	for _, file := range []struct{ what, path string }{{"settings", t.settingsFile}, {"samples", t.samplesFile}} {
		if file.path != "" {
			r.print("%s: %s\n", file.what, file.path)
		}
	}
	r.print("\n")
}

func (r *report) result(result kit.Result) {
	if result.Skipped != "" {
		r.skipped(result.Name, result.Skipped)
		return
	}
	if result.Err == nil {
		r.passed++
		r.print("pass  %6.2fs  %s\n", result.Took.Seconds(), result.Name)
		return
	}
	r.failed++
	r.print("FAIL  %6.2fs  %s\n", result.Took.Seconds(), result.Name)
	r.print("               %s\n", strings.ReplaceAll(strings.TrimSpace(result.Err.Error()), "\n", "\n               "))
}

func (r *report) skipped(name, why string) {
	r.skips++
	r.print("skip           %s (%s)\n", name, why)
}

// end prints the sum. Its error tells that the plugin does not keep its contract.
func (r *report) end() error {
	if r.left > 0 {
		r.print("\n%d checks were left out by --run: this says nothing of them.\n", r.left)
	}
	r.print("\n%d checks: %d passed, %d failed, %d skipped.\n", r.passed+r.failed+r.skips, r.passed, r.failed, r.skips)
	if r.failed > 0 {
		return fmt.Errorf("the plugin does not keep its contract: %d checks failed", r.failed)
	}
	return nil
}
