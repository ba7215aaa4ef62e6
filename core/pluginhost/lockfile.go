package pluginhost

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

const (
	// lockName is the file in the home that records the accepted plugins. It is not kept in the
	// folder of the plugins: who may put a file there must not accept it as well.
	lockName = "plugins.lock"
	// oldLockName is where servers before plugins.lock recorded them: in the folder of the plugins,
	// in the format of sha256sum.
	oldLockName = "SHA256SUMS"
)

// ErrChanged reports that a plugin's file is not the one that was first used or last accepted.
var ErrChanged = errors.New("its file has changed since it was accepted")

// LockFile records the SHA-256 of the accepted plugins of a home. A plugin whose configuration gives
// no sha256 is accepted at its first use; a changed file is not started until an operator accepts it.
// It is not safe for concurrent use: plugins are loaded one after the other.
type LockFile struct{ Home string }

// lockDocument is the content of the file.
type lockDocument struct {
	Version int                   `json:"version"`
	Plugins map[string]lockedFile `json:"plugins"` // by file name, such as auth-okta
}

type lockedFile struct {
	SHA256 string `json:"sha256"`
}

// Dir is the folder of the plugins.
func (l LockFile) Dir() string { return filepath.Join(l.Home, "plugins") }

func (l LockFile) path() string { return filepath.Join(l.Home, lockName) }

// Read returns the accepted sums by file name.
func (l LockFile) Read() (map[string]string, error) {
	raw, err := os.ReadFile(l.path())
	if errors.Is(err, fs.ErrNotExist) {
		return l.readOld()
	}
	if err != nil {
		return nil, err
	}
	var doc lockDocument
	if err := json.Unmarshal(raw, &doc); err != nil || doc.Version != 1 {
		return nil, fmt.Errorf("%s is not a lock file of version 1: restore it from a backup, or remove it and run `ropewalk plugin verify --accept NAME` for each plugin", l.path())
	}
	sums := map[string]string{}
	for name, file := range doc.Plugins {
		sums[name] = file.SHA256
	}
	return sums, nil
}

// readOld reads what servers before plugins.lock recorded.
func (l LockFile) readOld() (map[string]string, error) {
	path := filepath.Join(l.Dir(), oldLockName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			return nil, fmt.Errorf("%s: %q is not a line of the form `sha256  name`", path, lines.Text())
		}
		sums[name] = sum
	}
	return sums, nil
}

// keptSum returns the SHA-256 of the kept copy of a plugin, "" when there is none. It is what was
// accepted last when the record of it is gone.
func (l LockFile) keptSum(name string) (string, error) {
	kept, err := keptFiles(l.Dir(), name)
	if err != nil || len(kept) == 0 {
		return "", err
	}
	return strings.TrimPrefix(filepath.Ext(kept[0]), "."), nil
}

// Accept records the present SHA-256 of the named plugin's file.
func (l LockFile) Accept(name string) (string, error) {
	sums, err := l.Read()
	if err != nil {
		return "", err
	}
	sum, err := HashFile(filepath.Join(l.Dir(), name))
	if err != nil {
		return "", err
	}
	sums[name] = sum
	return sum, l.write(sums)
}

// Forget removes the record of a plugin whose file is gone.
func (l LockFile) Forget(name string) error {
	sums, err := l.Read()
	if err != nil {
		return err
	}
	delete(sums, name)
	return l.write(sums)
}

// sum returns the SHA-256 of a plugin's file; ErrChanged when another one was accepted.
func (l LockFile) sum(path string) (string, error) {
	sums, err := l.Read()
	if err != nil {
		return "", err
	}
	now, err := HashFile(path)
	if err != nil {
		return "", err
	}
	name := filepath.Base(path)
	want, known := sums[name]
	if !known {
		if want, err = l.keptSum(name); err != nil {
			return "", err
		}
		known = want != ""
	}
	if known && want != now {
		return "", fmt.Errorf("%w: its sha256 was %s and is %s; if you changed it, run `ropewalk plugin verify --accept %s`", ErrChanged, want, now, name)
	}
	return now, nil
}

// record accepts a plugin at its first use, and reports whether it was the first.
func (l LockFile) record(path, sum string) (first bool, err error) {
	sums, err := l.Read()
	if err != nil {
		return false, err
	}
	name := filepath.Base(path)
	if _, known := sums[name]; known {
		return false, nil
	}
	sums[name] = sum
	return true, l.write(sums)
}

func (l LockFile) write(sums map[string]string) error {
	doc := lockDocument{Version: 1, Plugins: map[string]lockedFile{}}
	for name, sum := range sums {
		doc.Plugins[name] = lockedFile{SHA256: sum}
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(l.path(), append(raw, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(l.Dir(), oldLockName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
