//go:build chaos

package files_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/internal/chaos"
)

// TestCheckingFilesCostsAboutTheTimeToReadThem compares the check before a start with a program that only reads and
// hashes the same files sequentially.
func TestCheckingFilesCostsAboutTheTimeToReadThem(t *testing.T) {
	for _, count := range []int{10, 3000} {
		home, content := t.TempDir(), []byte(strings.Repeat("x", 10<<10))
		r := core.Installation{Workspace: core.DefaultWorkspaceID, Name: "notes", Dir: filepath.Join(home, "apps", "notes", "bundle", "0123456789abcdef")}
		for i := range count {
			path := filepath.Join(r.Dir, fmt.Sprint(i%50), fmt.Sprint(i))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		s := files.New(files.Options{Home: home})
		var err error
		if r.Sum, err = s.Seal(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var checks, reads []time.Duration
		for range 20 {
			began := time.Now()
			if err := s.Verify(t.Context(), r, false); err != nil {
				t.Fatal(err)
			}
			checks = append(checks, time.Since(began))
			reads = append(reads, timeReading(t, r.Dir))
		}
		slices.Sort(checks)
		slices.Sort(reads)
		check, read := checks[10], reads[10]
		chaos.Record(t, chaos.Row{
			Number: "Cost of a start", OK: check <= 2*read+time.Millisecond,
			Done:     fmt.Sprintf("%d files of 10 KiB, 20 times", count),
			Figure:   fmt.Sprintf("%.1f ms, reading and hashing them %.1f ms", check.Seconds()*1000, read.Seconds()*1000),
			Required: "at most twice the time for reading, plus 1 ms",
		})
	}
}

func timeReading(t *testing.T, dir string) time.Duration {
	t.Helper()
	began := time.Now()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		sha256.Sum256(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
