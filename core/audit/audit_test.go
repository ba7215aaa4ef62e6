package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/audit"
)

// written returns the path of an audit file with n records.
func written(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	add(t, path, 0, n)
	return path
}

func add(t *testing.T, path string, from, to int) {
	t.Helper()
	f, err := audit.OpenFile(path, audit.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		if err := f.Write(t.Context(), core.AuditRecord{Actor: "usr_a", Action: "tools.call", Target: fmt.Sprintf("app__tool%d", i), Outcome: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// verify checks the chain of a file with this content.
func verify(t *testing.T, path string, content []byte) error {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := audit.Verify(path)
	return err
}

func TestEveryFlippedByteIsLocated(t *testing.T) {
	path := written(t, 4)
	raw := read(t, path)
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		lineNumber := 1 + bytes.Count(raw[:i], []byte{'\n'})
		err := verify(t, path, changed)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s: line %d:", path, lineNumber)) {
			t.Fatalf("byte %d of line %d: %v", i, lineNumber, err)
		}
	}
}

func TestARemovedOrMovedLineIsLocated(t *testing.T) {
	path := written(t, 5)
	lines := bytes.SplitAfter(read(t, path), []byte{'\n'})
	for name, c := range map[string]struct {
		order []int
		want  string
	}{
		"whole":    {[]int{0, 1, 2, 3, 4}, ""},
		"removed":  {[]int{0, 1, 3, 4}, "line 3:"},
		"first":    {[]int{1, 2}, "line 1:"},
		"moved":    {[]int{0, 2, 1, 3, 4}, "line 2:"},
		"repeated": {[]int{0, 1, 1, 2}, "line 3:"},
	} {
		var file []byte
		for _, n := range c.order {
			file = append(file, lines[n]...)
		}
		err := verify(t, path, file)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), path+": "+c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAChainContinuesAfterARestartAndACrash(t *testing.T) {
	path := written(t, 3)
	raw := read(t, path)
	if err := os.WriteFile(path, append(raw, raw[:40]...), 0o600); err != nil { // cut off in the middle of a line
		t.Fatal(err)
	}
	add(t, path, 3, 6)
	summary, err := audit.Verify(path)
	if err != nil || summary.Records != 6 {
		t.Errorf("%+v, %v", summary, err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, []byte("tool1"), []byte("tool9"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.OpenFile(path, audit.FileOptions{}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a changed file should not be continued: %v", err)
	}
}

func TestALogThatFailsClosedRefuses(t *testing.T) {
	for closed, want := range map[bool]core.Code{true: core.CodeUnavailable, false: ""} {
		f, err := audit.OpenFile(filepath.Join(t.TempDir(), "audit.log"), audit.FileOptions{Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		l := audit.New(audit.Options{Sinks: []audit.Sink{f}, FailClosed: closed, Logger: hclog.NewNullLogger()})
		if err := l.Record(t.Context(), core.AuditRecord{Action: "a"}); err != nil {
			t.Error(err)
		}
		if err := l.Ready(); err != nil {
			t.Errorf("fail closed %v, while records are written: %v", closed, err)
		}
		_ = f.Close(t.Context())
		if err := l.Record(t.Context(), core.AuditRecord{Action: "b"}); (err == nil) != (want == "") || err != nil && core.CodeOf(err) != want {
			t.Errorf("fail closed %v: %v", closed, err)
		}
		if err := l.Ready(); err == nil || !strings.Contains(err.Error(), "audit.file") {
			t.Errorf("fail closed %v, after a record that was not written: %v", closed, err)
		}
	}
}

func TestAnAuditFileCanBeReadAgainWhateverTheArgumentsOfACall(t *testing.T) {
	for _, size := range []int{4 << 20, 8 << 20, 64 << 20} {
		path := filepath.Join(t.TempDir(), "audit.log")
		f, err := audit.OpenFile(path, audit.FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		arguments := `{"a":"` + strings.Repeat("<", size-8) + `"}` // each character takes six bytes in the file
		if err := f.Write(t.Context(), core.AuditRecord{Actor: "usr_a", Action: "tools.call", Outcome: "allowed", Arguments: []byte(arguments)}); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		inFull := bytes.Count(read(t, path), []byte(`\u003c`)) == size-8
		if inFull != (size == 4<<20) {
			t.Errorf("%d bytes: recorded in full: %t", size, inFull)
		}
		if !inFull && !bytes.Contains(read(t, path), fmt.Appendf(nil, `"left out: %d bytes"`, size)) {
			t.Errorf("%d bytes: the record does not have the size", size)
		}
		add(t, path, 0, 1)
		if s, err := audit.Verify(path); err != nil || s.Records != 2 {
			t.Errorf("%d bytes: %v %v", size, s, err)
		}
	}
}

func TestATargetOfAnyLengthMakesAShortRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := audit.OpenFile(path, audit.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := audit.New(audit.Options{Sinks: []audit.Sink{f}, Logger: hclog.NewNullLogger()})
	if err := l.Record(t.Context(), core.AuditRecord{Action: "tools.call", Target: strings.Repeat("é", 1<<20), Outcome: "tool_not_found"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := read(t, path); len(text) > 5000 || !bytes.Contains(text, []byte(strings.Repeat("é", 2000))) {
		t.Errorf("a record of %d bytes", len(text))
	}
}
