package bundle

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Sums has an entry for every file and every symbolic link in a directory, by relative path: the type, and the
// SHA-256 of the file's content or the link's target. It ignores times, owners and all permissions except the
// owner's execute bit.
type Sums map[string]string

// The number of files that SumsOf reads at once, and the size of the buffer for each.
const (
	maxSummers = 4
	sumBuffer  = 64 << 10
)

// SumsOf reads all files in a directory. Files that are neither regular files nor links are rejected with an
// error wrapping ErrArchive. Links are not followed.
func SumsOf(ctx context.Context, dir string) (Sums, error) {
	sums, files := Sums{}, []string(nil)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.Type() != fs.ModeSymlink {
			files = append(files, name)
			return nil
		}
		target, err := os.Readlink(path)
		sums[name] = "link " + strconv.Quote(target)
		return err
	})
	if err != nil {
		return nil, err
	}
	entries, err := sumFiles(ctx, dir, files)
	if err != nil {
		return nil, err
	}
	for i, name := range files {
		sums[name] = entries[i]
	}
	return sums, nil
}

// sumFiles returns the entries of regular files, in order.
func sumFiles(ctx context.Context, dir string, files []string) ([]string, error) {
	entries := make([]string, len(files))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), maxSummers, len(files)) {
		group.Go(func() (err error) {
			buffer := make([]byte, sumBuffer)
			for i := next.Add(1) - 1; i < int64(len(files)) && err == nil; i = next.Add(1) - 1 {
				entries[i], err = sumOf(ctx, dir, files[i], buffer)
			}
			return err
		})
	}
	return entries, group.Wait()
}

// sumOf returns the entry of a regular file.
func sumOf(ctx context.Context, dir, name string, buffer []byte) (string, error) {
	// Non-blocking: opening a pipe would wait for a writer.
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", refused("%q is not a file, a directory or a link", name)
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, cancellable{ctx, f}, buffer); err != nil {
		return "", err
	}
	kind := "file "
	if info.Mode()&0o100 != 0 {
		kind = "program "
	}
	return kind + hex.EncodeToString(h.Sum(nil)), nil
}

// WriteTo writes the sums, one per line, ordered by path.
func (s Sums) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for _, name := range slices.Sorted(maps.Keys(s)) {
		n, err := fmt.Fprintf(w, "%s %s\n", strconv.Quote(name), s[name])
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Sum returns the SHA-256 of the output of WriteTo, in hex.
func (s Sums) Sum() string {
	h := sha256.New()
	_, _ = s.WriteTo(h) // writing to a hash cannot fail
	return hex.EncodeToString(h.Sum(nil))
}

// ReadSums reads the output of WriteTo.
func ReadSums(r io.Reader) (Sums, error) {
	sums, lines := Sums{}, bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		quoted, err := strconv.QuotedPrefix(lines.Text())
		if err != nil {
			return nil, err
		}
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		sums[name] = strings.TrimPrefix(lines.Text()[len(quoted):], " ")
	}
	return sums, lines.Err()
}

// Difference returns the paths that changed from s to now, in order: the added ones, and the changed or removed
// ones.
func (s Sums) Difference(now Sums) (added, changed []string) {
	for name, entry := range now {
		if before, ok := s[name]; !ok {
			added = append(added, name)
		} else if before != entry {
			changed = append(changed, name)
		}
	}
	for name := range s {
		if _, ok := now[name]; !ok {
			changed = append(changed, name)
		}
	}
	slices.Sort(added)
	slices.Sort(changed)
	return added, changed
}
