package pluginhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Match is the result of comparing a plugin's file with its expected sha256.
type Match string

// The results of a comparison.
const (
	MatchOK      Match = "ok"
	MatchChanged Match = "changed" // the file now has a different sha256
	MatchUnknown Match = "unknown" // no sha256 is recorded: the first use will record one
	MatchMissing Match = "missing" // a sha256 is recorded, but the file is gone
)

// Sum is a plugin's file with its expected and actual sha256.
type Sum struct {
	Path string
	Want string // "" if unknown
	Now  string // "" if missing

	Record Locked // the record of a plugin in the home
}

// Match compares the actual sha256 with the expected one.
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

// SumOf hashes the file at path. want is the expected sha256.
func SumOf(path, want string) (Sum, error) {
	now, err := HashFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return Sum{Path: path, Want: want, Now: now}, err
}

// All returns the sums of all plugins that are in the directory or have a record, sorted by name.
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

// Files returns the names of the plugins in the directory: regular files named <kind>-<name>.
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
