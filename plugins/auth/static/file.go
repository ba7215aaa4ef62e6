package static

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
)

const (
	fileLimit = 4 << 20
	// badFor is how long the last good tokens stay valid after the file has become missing or invalid. It is long
	// enough for an editor that writes in place, and too short for a removed token to matter.
	badFor = time.Minute
)

// file is a token file that is reread when it changes.
type file struct {
	path string
	log  hclog.Logger

	mu       sync.Mutex
	entries  entries
	seen     os.FileInfo // from the last read, even if it failed; nil if there was no file
	bad      error       // why the last read failed; nil if it succeeded
	badSince time.Time
}

// current returns the tokens in the file. While the file is missing or invalid, the last good tokens stay valid for
// badFor. After that, the error is plugins.ErrUnavailable.
func (f *file) current() (entries, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(f.path)
	if changed(f.seen, now, err) {
		f.reload()
	}
	if f.bad != nil && time.Since(f.badSince) > badFor {
		return nil, fmt.Errorf("%w: the token file is invalid: %w", plugins.ErrUnavailable, f.bad)
	}
	return f.entries, nil
}

func (f *file) load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reload()
	return f.bad
}

func (f *file) reload() {
	loaded, info, err := read(f.path)
	f.seen = info
	if err == nil {
		f.entries, f.bad = loaded, nil
		f.log.Info("The token file was read", "path", f.path, "tokens", len(loaded))
		return
	}
	if f.bad == nil {
		f.badSince = time.Now()
	}
	f.bad = err
	f.log.Error("The token file cannot be used; its previous contents stay valid for a minute", "path", f.path, "error", err)
}

// changed reports whether the file has changed: by identity, modification time or length.
func changed(before, now os.FileInfo, err error) bool {
	if before == nil || err != nil {
		return before != nil || err == nil
	}
	return !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()) || before.Size() != now.Size()
}

// read reads the file's state before its contents, so that a write in between is noticed next time.
func read(path string) (entries, os.FileInfo, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, nil, errors.Unwrap(err)
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, errors.New("is not a file")
	}
	body, err := io.ReadAll(io.LimitReader(in, fileLimit+1))
	if err != nil {
		return nil, info, err
	}
	if len(body) > fileLimit {
		return nil, info, fmt.Errorf("is larger than %d bytes", fileLimit)
	}
	loaded, err := parse(body)
	return loaded, info, err
}
