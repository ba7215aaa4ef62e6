package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ropewalk/ropewalk/internal/chaos"
)

// totalTime limits all tests together.
const totalTime = time.Hour

func main() {
	failed, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

// run measures the rows in only, or every row if there are none, and prints the table.
func run(only []string) (failed bool, err error) {
	rows, err := readRows(filepath.Join("docs", "security.md"))
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "chaos-*")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), totalTime)
	defer cancel()
	results := map[string][]result{}
	selected := slices.DeleteFunc(checks(), func(c check) bool { return len(only) > 0 && !slices.Contains(only, c.row) })
	start := time.Now()
	for i, c := range selected {
		fmt.Fprintf(os.Stderr, "%d of %d, %s: row %s: %s %s\n", i+1, len(selected), time.Since(start).Round(time.Second), c.row, c.dir, c.tests)
		results[c.row] = append(results[c.row], c.measure(ctx, filepath.Join(dir, fmt.Sprint(i))))
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "#\tTHREAT\tDONE\tFIGURE\tREQUIRED\tVERDICT")
	for _, r := range rows {
		all := resultsOf(r, results)
		if len(all) == 0 && len(only) > 0 {
			continue
		}
		if len(all) == 0 {
			all = []result{{verdict: "not measured"}}
		}
		for _, got := range all {
			failed = failed || got.verdict == "FAILS"
			_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", r.number, shortened(r.threat), got.done, got.figure, shortened(cmp.Or(got.required, r.required)), got.verdict)
		}
	}
	return failed, out.Flush()
}

// resultsOf returns the results of a row's checks.
func resultsOf(r row, results map[string][]result) []result {
	if r.number != "" {
		return results[r.number]
	}
	for key, got := range results {
		if _, err := strconv.Atoi(key); err != nil && strings.HasPrefix(r.threat, key) {
			return got
		}
	}
	return nil
}

// result is the result of a check.
type result struct{ done, figure, required, verdict string }

// measure runs the tests of a check. They write their rows to the file report.
func (c check) measure(ctx context.Context, report string) result {
	if c.dir == "" {
		return c.makeTarget(ctx)
	}
	if strings.HasPrefix(c.tests, "Fuzz") {
		return c.fuzz(ctx)
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-tags", "chaos,shim", "-count=1", "-timeout", "25m", "-v", "-run", "^("+c.tests+")$", "./"+c.dir)
	cmd.Env = append(cmd.Environ(), chaos.ReportVariable+"="+report)
	out, err := cmd.CombinedOutput()
	passed := bytes.Count(out, []byte("\n--- PASS: "))
	if err != nil || passed == 0 {
		_, _ = os.Stderr.Write(out[max(0, len(out)-4000):])
		return result{c.tests, fmt.Sprintf("%v, %d passed", err, passed), "", "FAILS"}
	}
	recorded, err := readReport(report)
	if err != nil {
		return result{c.tests, err.Error(), "", "FAILS"}
	}
	if len(recorded) == 0 {
		return result{fmt.Sprintf("%d tests in make test", passed), "", "", "passes"}
	}
	r := result{verdict: "holds"}
	for _, row := range recorded {
		r.done, r.figure, r.required = join(r.done, row.Done), join(r.figure, row.Figure), join(r.required, row.Required)
		if !row.OK {
			r.verdict = "FAILS"
		}
	}
	return r
}

// executions is how many times a fuzz target is run.
const executions = "50000"

// fuzz runs a fuzz target.
func (c check) fuzz(ctx context.Context) result {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-timeout", "15m", "-run", "^$", "-fuzz", "^"+c.tests+"$", "-fuzztime", executions+"x", "./"+c.dir)
	r := result{c.tests + ": " + executions + " executions", "no failure", "no failure", "holds"}
	if out, err := cmd.CombinedOutput(); err != nil {
		_, _ = os.Stderr.Write(out[max(0, len(out)-4000):])
		r.figure, r.verdict = err.Error(), "FAILS"
	}
	return r
}

// makeTarget runs a Makefile target, which fails if it finds something.
func (c check) makeTarget(ctx context.Context) result {
	r := result{"make " + c.tests, "nothing found", "nothing found", "holds"}
	if out, err := exec.CommandContext(ctx, "make", "--no-print-directory", c.tests).CombinedOutput(); err != nil {
		_, _ = os.Stderr.Write(out[max(0, len(out)-4000):])
		r.figure, r.verdict = err.Error(), "FAILS"
	}
	return r
}

func readReport(path string) ([]chaos.Row, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var rows []chaos.Row
	for lines := bufio.NewScanner(bytes.NewReader(raw)); err == nil && lines.Scan(); {
		var r chaos.Row
		err = json.Unmarshal(lines.Bytes(), &r)
		rows = append(rows, r)
	}
	return rows, err
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// shortened cuts a string to at most 60 characters.
func shortened(text string) string {
	const limit = 60
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
