package file_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/hashchain"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func settings(t *testing.T, path string) json.RawMessage {
	t.Helper()
	settings, err := json.Marshal(file.Settings{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

func open(t *testing.T, path string) *file.Sink {
	t.Helper()
	s := file.New()
	if err := s.Configure(t.Context(), plugins.Config{JSON: settings(t, path)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTheContract(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	process := func(s audit.Sink, end func()) (*audittest.Process, error) {
		return &audittest.Process{Sink: s, Kill: func() {}, Close: end}, nil // only executables can be killed
	}
	subject := audittest.Subject{Data: dir, Open: func(context.Context) (*audittest.Process, error) {
		s := file.New()
		end := func() { _ = s.Close() }
		if err := s.Configure(t.Context(), plugins.Config{JSON: settings(t, path)}); err != nil {
			return nil, err
		}
		return process(s, end)
	}}
	t.Run("direct", func(t *testing.T) {
		subject.Fixed = true // there is no way to fill the disk
		plugintest.Judge(t, audittest.Properties(), plugintest.Trial(kit.Quick), subject)
		verify(t, path)
	})
	t.Run("as an executable", func(t *testing.T) { testenv.PassesItsKit(t, 0, "audit-file", `{"file": "${data}/audit.log"}`) })
}

func verify(t *testing.T, path string) int {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := hashchain.Verify(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return summary.Records
}

func TestARecordIsRefusedAfterTheFileWasRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	s := open(t, path)
	if err := s.Write(t.Context(), "one", []audit.Record{{Sequence: 1, Action: "a"}}); err != nil || verify(t, path) != 1 {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), "one", []audit.Record{{Sequence: 2, Action: "a"}}); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "removed or replaced") {
		t.Error(err)
	}
	if kept, err := s.Read(t.Context(), "one", 0, 10); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("reading a deleted file: %v, %v", kept, err)
	}
}

func TestCallsStopWhenTheirContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	s := open(t, path)
	if err := s.Write(t.Context(), "one", some(1, 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Write(ctx, "one", some(2, 2)); !errors.Is(err, context.Canceled) || verify(t, path) != 1 {
		t.Errorf("%d records are in the file, and the error is %v", verify(t, path), err)
	}
	if kept, err := s.Read(ctx, "one", 0, 10); !errors.Is(err, plugins.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", kept, err)
	}
}

func some(first, last uint64) (records []audit.Record) {
	for n := first; n <= last; n++ {
		records = append(records, audit.Record{Sequence: n, Action: "a"})
	}
	return records
}

// Each sink knows what the file contained when it started, and what the other one has written since.
func TestTwoSinksForOneFileWriteEachRecordOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	first := open(t, path)
	if err := first.Write(t.Context(), "one", some(1, 2)); err != nil {
		t.Fatal(err)
	}
	second := open(t, path)
	for i, s := range []*file.Sink{second, second, first, second} {
		if err := s.Write(t.Context(), "one", some(1, uint64(i+2))); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := first.Read(t.Context(), "one", 0, 10)
	if !slices.EqualFunc(kept, some(1, 5), func(a, b audit.Record) bool { return a.Sequence == b.Sequence }) || verify(t, path) != 5 {
		t.Errorf("the file has %d of 5 records: %+v, %v", verify(t, path), kept, err)
	}
}

// A trail that ends early without an error would look complete.
func TestReadingReportsAnUnreadableRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	other, err := hashchain.Open(path, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := [][]byte{[]byte(`{"stream":"one","sequence":1}`), []byte(`{"stream":"one","sequence":2,"time":"yesterday"}`), []byte(`{"stream":"one","sequence":3}`)}
	if err := errors.Join(other.Append(func() ([][]byte, error) { return lines, nil }), other.Close()); err != nil {
		t.Fatal(err)
	}
	if kept, err := open(t, path).Read(t.Context(), "one", 0, 10); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "yesterday") {
		t.Errorf("got %+v, %v", kept, err)
	}
}

func TestARecordThatCannotBeWrittenIsNotKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	s := open(t, path)
	broken := []audit.Record{{Sequence: 1, Action: "a"}, {Sequence: 2, Action: "a", Arguments: json.RawMessage(`{"cut`)}}
	if err := s.Write(t.Context(), "one", broken); err == nil || verify(t, path) != 0 {
		t.Errorf("%d records are in the file, and the error is %v", verify(t, path), err)
	}
	if err := s.Write(t.Context(), "one", broken[:1]); err != nil || verify(t, path) != 1 {
		t.Errorf("%d records are in the file, and the error is %v", verify(t, path), err)
	}
}

func TestAFileWithUnrelatedContentIsReportedForItsSetting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	other, err := hashchain.Open(path, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Append(func() ([][]byte, error) { return [][]byte{[]byte(`"text"`)}, nil }), other.Close()); err != nil {
		t.Fatal(err)
	}
	err = file.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(`{"file": "` + path + `"}`)})
	if _, ok := errors.AsType[*plugins.ConfigError](err); !ok || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
}

func TestAClosedSinkHasReleasedItsFile(t *testing.T) {
	if err := file.New().Close(); err != nil {
		t.Errorf("closing a sink that has no file: %v", err)
	}
	s := open(t, filepath.Join(t.TempDir(), "audit.log"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), "one", []audit.Record{{Sequence: 1, Action: "a"}}); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("a write after Close: got %v, want unavailable", err)
	}
}

func TestUnusableValuesAreReportedForTheirSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"file": "audit.log"}`:               "file: must be an absolute path",
		`{"file": "/no/such/folder/audit"}`:   "file: cannot be used",
		`{"fil": "/tmp/audit"}`:               `did you mean "file"`,
		`{}`:                                  "file: is missing",
		`{"file": "` + t.TempDir() + `/../"}`: "file: cannot be used",
	} {
		err := file.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(settings)})
		if _, ok := errors.AsType[*plugins.ConfigError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
