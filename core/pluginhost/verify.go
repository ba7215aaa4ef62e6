package pluginhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Match is how a plugin's file compares with the sha256 it must have.
type Match string

// The ways to compare.
const (
	MatchOK      Match = "ok"
	MatchChanged Match = "changed" // it has another sha256 now
	MatchUnknown Match = "unknown" // no sha256 is remembered: the first use will remember one
	MatchMissing Match = "missing" // a sha256 is remembered, and the file is gone
)

// Sum is one plugin's file with its sha256.
type Sum struct {
	Path string
	Want string // "" when unknown
	Now  string // "" when missing

	Record Locked // of a plugin in the home
}

// Match compares.
func (s Sum) Match() Match {
	switch {
	case s.Now == "":
		return MatchMissing
	case s.Want == "":
		return MatchUnknown
	case !strings.EqualFold(s.Want, s.Now):
		return MatchChanged
	}
	return MatchOK
}

// SumOf hashes the file at path, which must have the sha256 want.
func SumOf(path, want string) (Sum, error) {
	now, err := HashFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return Sum{Path: path, Want: want, Now: now}, err
}

// All are the sums of every plugin in the folder, and of every one that was there, by name.
func (l LockFile) All() ([]Sum, error) {
	remembered, err := l.Read()
	if err != nil {
		return nil, err
	}
	names, err := l.Files()
	if err != nil {
		return nil, err
	}
	for name := range remembered {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	all := make([]Sum, len(names))
	for i, name := range names {
		if all[i], err = SumOf(filepath.Join(l.Dir(), name), remembered[name].SHA256); err != nil {
			return nil, err
		}
		all[i].Record = remembered[name]
	}
	return all, nil
}

// Files are the names of the plugins in the folder: what is named <kind>-<name> and is a file.
func (l LockFile) Files() ([]string, error) {
	entries, err := os.ReadDir(l.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(l.Dir(), e.Name())); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if _, ok := KindOf(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
