package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/audit"
)

// begun opens an audit file with options. Problems fail the test.
func begun(t *testing.T, path string, o audit.FileOptions) *audit.File {
	t.Helper()
	o.Problem = func(err error) { t.Error(err) }
	f, err := audit.OpenFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close(t.Context()) })
	return f
}

func put(t *testing.T, f *audit.File, records ...core.AuditRecord) {
	t.Helper()
	for _, r := range records {
		if err := f.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered returns records with the targets from, from+1 and so on.
func numbered(from, to int) (all []core.AuditRecord) {
	for i := from; i < to; i++ {
		all = append(all, core.AuditRecord{Time: time.Now().UTC(), Action: "tools.call", Target: fmt.Sprint(i), Outcome: "ok"})
	}
	return all
}

// names returns the names of the files in path's directory.
func names(t *testing.T, path string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// rotated returns a set of files with the records 0 to n-1, three per file, and their paths in order.
func rotated(t *testing.T, n int) (path string, set []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.log")
	f := begun(t, path, audit.FileOptions{MaxBytes: 700})
	put(t, f, numbered(0, n)...)
	for _, name := range names(t, path) {
		set = append(set, filepath.Join(filepath.Dir(path), name))
	}
	set = append(set[1:], set[0]) // the current file, which has the shortest name, comes last
	return path, set
}

func TestAFileIsClosedBySizeAndTheChainContinuesInTheNext(t *testing.T) {
	path, set := rotated(t, 20)
	if len(set) < 4 || filepath.Base(set[0]) != "audit.log.000001" {
		t.Fatalf("the files are %q", set)
	}
	summary, err := audit.Verify(path)
	if err != nil || summary.Records != 20 || summary.Files != len(set) {
		t.Errorf("%+v, %v", summary, err)
	}
	put(t, begun(t, path, audit.FileOptions{MaxBytes: 700}), numbered(20, 30)...) // after a restart
	if summary, err := audit.Verify(path); err != nil || summary.Records != 30 {
		t.Errorf("after a restart: %+v, %v", summary, err)
	}
}

func TestEveryFlippedByteIsLocatedAcrossClosedFiles(t *testing.T) {
	path, set := rotated(t, 5)
	for _, file := range set {
		raw := read(t, file)
		for i := range raw {
			changed := bytes.Clone(raw)
			changed[i] ^= 1
			if err := os.WriteFile(file, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%s: line %d:", file, 1+bytes.Count(raw[:i], []byte{'\n'}))
			if _, err := audit.Verify(path); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("byte %d of %s: %v", i, file, err)
			}
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARemovedSwappedOrTruncatedClosedFileIsLocated(t *testing.T) {
	for name, c := range map[string]struct {
		change func(set []string) error
		want   string
	}{
		"the first is removed": {func(set []string) error { return os.Remove(set[0]) }, "000002: line 1: does not follow the previous line: the lines or the file before it were removed"},
		"one is removed":       {func(set []string) error { return os.Remove(set[1]) }, "000002 is missing"},
		"the last is removed":  {func(set []string) error { return os.Remove(set[len(set)-2]) }, "audit.log: line 1: does not follow"},
		"two are exchanged": {func(set []string) error {
			return errorsOf(os.Rename(set[0], set[0]+"x"), os.Rename(set[1], set[0]), os.Rename(set[0]+"x", set[1]))
		}, "000002: line 1: does not follow"},
		"one is cut short": {func(set []string) error { return os.Truncate(set[0], 100) }, "000001: line 1: is truncated"},
		"the end of one is removed": {func(set []string) error {
			raw, err := os.ReadFile(set[0])
			if err != nil {
				return err
			}
			return os.WriteFile(set[0], raw[:bytes.IndexByte(raw, '\n')+1], 0o600)
		}, "000002: line 1: does not follow"},
	} {
		path, set := rotated(t, 20)
		if err := c.change(set); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Verify(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAFileIsClosedByItsAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	old := core.AuditRecord{Time: time.Now().Add(-25 * time.Hour), Target: "yesterday"}
	f := begun(t, path, audit.FileOptions{MaxAge: 24 * time.Hour})
	put(t, f, old, core.AuditRecord{Time: time.Now(), Target: "today"}, core.AuditRecord{Time: time.Now(), Target: "today"})
	if got := names(t, path); !slices.Equal(got, []string{"audit.log", "audit.log.000001"}) {
		t.Errorf("the files are %q", got)
	}
	if summary, err := audit.Verify(path); err != nil || summary.Records != 3 || summary.Files != 2 {
		t.Errorf("%+v, %v", summary, err)
	}
}

func TestClosedFilesOlderThanTheRetentionAreDeletedAndTheRestStaysVerifiable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(age time.Duration) {
		f := begun(t, path, audit.FileOptions{MaxBytes: 1})
		put(t, f, core.AuditRecord{Time: time.Now().Add(-age), Target: fmt.Sprint(age)})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, age := range []time.Duration{72 * time.Hour, 49 * time.Hour, time.Hour, time.Minute} {
		write(age)
	}
	f := begun(t, path, audit.FileOptions{MaxBytes: 1 << 20, Keep: 48 * time.Hour})
	if got := names(t, path); !slices.Equal(got, []string{"audit.log", "audit.log.000003"}) {
		t.Fatalf("the files are %q", got)
	}
	summary, err := audit.Verify(path)
	if err != nil || summary.Records != 4 { // the two that remain, and two about the deleted files
		t.Errorf("%+v, %v", summary, err)
	}
	page, err := f.Records(t.Context(), core.AuditQuery{Limit: 10})
	if err != nil || len(page.Records) != 4 || page.Records[0].Action != audit.ActionDeleteFile || !strings.HasPrefix(page.Records[0].Target, "audit.log.000002 ") {
		t.Errorf("%+v, %v", page, err)
	}
	if err := os.Remove(path + ".000003"); err != nil { // deleted, but not by the retention
		t.Fatal(err)
	}
	if _, err := audit.Verify(path); err == nil || !strings.Contains(err.Error(), "no record says that the file was deleted") {
		t.Errorf("a file that someone else removed: %v", err)
	}
}

func TestRecordsAreReadAcrossClosedFilesInPages(t *testing.T) {
	path, _ := rotated(t, 20)
	f := begun(t, path, audit.FileOptions{MaxBytes: 700})
	var want []string
	for i := 19; i >= 0; i-- {
		want = append(want, fmt.Sprint(i))
	}
	for limit := 1; limit <= 21; limit++ {
		got := strings.Fields(strings.Join(targets(t, f, core.AuditQuery{Limit: limit}), " "))
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	first, err := f.Records(t.Context(), core.AuditQuery{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	put(t, f, numbered(20, 40)...) // the current file is closed between two pages
	rest := strings.Fields(strings.Join(targets(t, f, core.AuditQuery{Limit: 3, Cursor: first.Next}), " "))
	if !slices.Equal(rest, want[2:]) {
		t.Errorf("the pages after a rotation are %q", rest)
	}
}

func TestAFileThatCannotBeClosedIsStillWrittenTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	var problems []error
	f, err := audit.OpenFile(path, audit.FileOptions{MaxBytes: 1, Problem: func(err error) { problems = append(problems, err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close(t.Context()) }()
	put(t, f, numbered(0, 1)...)
	if err := os.WriteFile(path+".000001", []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, f, numbered(1, 3)...)
	if len(problems) == 0 || !strings.Contains(problems[0].Error(), "already exists") {
		t.Errorf("the problems are %v", problems)
	}
	if err := os.Remove(path + ".000001"); err != nil {
		t.Fatal(err)
	}
	put(t, f, numbered(3, 4)...)
	if summary, err := audit.Verify(path); err != nil || summary.Records != 4 || summary.Files != 2 {
		t.Errorf("%+v, %v", summary, err)
	}
}
