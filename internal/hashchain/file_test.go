package hashchain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/internal/hashchain"
)

func open(t *testing.T, path string, seen func([]byte) error) *hashchain.File {
	t.Helper()
	f, err := hashchain.Open(path, false, seen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func add(f *hashchain.File, texts ...string) error {
	return f.Append(func() ([][]byte, error) {
		var records [][]byte
		for _, text := range texts {
			raw, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			records = append(records, raw)
		}
		return records, nil
	})
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

func TestFilesWithTheSamePathShareAChainAndSeeEachOthersRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain")
	var mu sync.Mutex
	var seen []string
	first := open(t, path, func(record []byte) error {
		mu.Lock()
		defer mu.Unlock()
		var text string
		defer func() { seen = append(seen, text) }()
		return json.Unmarshal(record, &text)
	})
	second := open(t, path, nil)
	var writing sync.WaitGroup
	for i, f := range []*hashchain.File{first, second} {
		writing.Go(func() {
			for n := range 50 {
				if err := add(f, fmt.Sprintf("%d-%d", i, n), "<&>"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	if err := add(first); err != nil {
		t.Fatal(err)
	}
	if n := verify(t, path); n != 200 {
		t.Errorf("%d records, want 200", n)
	}
	var others []string
	for n := range 50 {
		others = append(others, fmt.Sprintf("1-%d", n), "<&>")
	}
	if !slices.Equal(seen, others) {
		t.Errorf("the first file has seen %q", seen)
	}
}

func TestNothingIsAppendedToAFileThatWasRemovedReplacedOrCutOff(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return os.Rename(path, path+".1")
		},
		"truncated": func(path string) error { return os.Truncate(path, 10) },
	} {
		path := filepath.Join(t.TempDir(), "chain")
		f := open(t, path, nil)
		if err := add(f, "one"); err != nil {
			t.Fatal(err)
		}
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		if err := add(f, "two"); err == nil || !strings.Contains(err.Error(), "while in use") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheErrorForARecordThatAnotherProcessChangedNamesItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain")
	f := open(t, path, nil)
	if err := add(f, "one", "two"); err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = other.WriteString("{}\n"); err != nil {
		t.Fatal(err)
	}
	if err := add(f, "three"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
	if err = other.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheErrorForAnUnreadableFileNamesItOnceWithTheReason(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "absent"): "no such file or directory", dir: "is a directory"} {
		if _, err := hashchain.VerifySet(path, nil); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s: %v", path, err)
		}
	}
}
