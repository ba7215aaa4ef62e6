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
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/ropewalk/ropewalk/core/config"
)

const (
	// lockName is the file in the home that records the accepted plugins. It is not in the plugins directory, because a
	// user who may put a file there must not also be able to accept it.
	lockName = "plugins.lock"
	// oldLockName is the file in which servers recorded accepted plugins before plugins.lock existed. It was in the
	// plugins directory, in sha256sum format.
	oldLockName = "SHA256SUMS"
)

// ErrChanged reports that a plugin's file has changed since it was first used or last accepted.
var ErrChanged = errors.New("its file has changed since it was accepted")

// LockFile records the SHA-256 of a home's accepted plugins. A plugin whose configuration has no sha256 is
// accepted at first use; a changed file is not started until an operator accepts it. It is not safe for
// concurrent use: plugins are loaded one at a time.
type LockFile struct{ Home string }

// lockDocument is the content of the file.
type lockDocument struct {
	Version int               `json:"version"`
	Plugins map[string]Locked `json:"plugins"` // by file name, such as auth-okta
}

// Locked is the record of one plugin. For a plugin that was put into the directory by hand only SHA256 is
// known; `plugin install` fills in the rest.
type Locked struct {
	SHA256  string    `json:"sha256"`
	Source  string    `json:"source,omitempty"`  // where the file came from, without passwords
	Version string    `json:"version,omitempty"` // as reported by the plugin
	Signer  string    `json:"signer,omitempty"`  // the minisign public key that its signature was verified with
	Time    time.Time `json:"time,omitzero"`     // when it was installed
}

// Dir returns the plugins directory.
func (l LockFile) Dir() string { return filepath.Join(l.Home, "plugins") }

func (l LockFile) path() string { return filepath.Join(l.Home, lockName) }

// Read returns the records of the accepted plugins by file name.
func (l LockFile) Read() (map[string]Locked, error) {
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
	if doc.Plugins == nil {
		doc.Plugins = map[string]Locked{}
	}
	return doc.Plugins, nil
}

// readOld reads the records that servers wrote before plugins.lock existed.
func (l LockFile) readOld() (map[string]Locked, error) {
	path := filepath.Join(l.Dir(), oldLockName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Locked{}, nil
	}
	if err != nil {
		return nil, err
	}
	records := map[string]Locked{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			return nil, fmt.Errorf("%s: %q is not a line of the form `sha256  name`", path, lines.Text())
		}
		records[name] = Locked{SHA256: sum}
	}
	return records, nil
}

// keptSum returns the SHA-256 of a plugin's kept copy, or "". If the record is gone, this is the last accepted one.
func (l LockFile) keptSum(name string) (string, error) {
	kept, err := keptFiles(l.Dir(), name)
	if err != nil || len(kept) == 0 {
		return "", err
	}
	return strings.TrimPrefix(filepath.Ext(kept[0]), "."), nil
}

// Accept records the current SHA-256 of the named plugin's file. If the file changed, the rest of its record no
// longer applies and is dropped.
func (l LockFile) Accept(name string) (string, error) {
	records, err := l.Read()
	if err != nil {
		return "", err
	}
	sum, err := HashFile(filepath.Join(l.Dir(), name))
	if err != nil {
		return "", err
	}
	if records[name].SHA256 == sum {
		return sum, nil
	}
	records[name] = Locked{SHA256: sum}
	return sum, l.write(records)
}

// Record replaces a plugin's record.
func (l LockFile) Record(name string, record Locked) error {
	records, err := l.Read()
	if err != nil {
		return err
	}
	records[name] = record
	return l.write(records)
}

// FileOf returns the plugin's file name for a name that someone entered. That may be the file name itself, or the name
// used in configurations, such as okta for auth-okta, unless plugins of several kinds have that name.
func (l LockFile) FileOf(name string) string {
	files, err := l.Files()
	if err != nil || slices.Contains(files, name) {
		return name
	}
	var found []string
	for _, file := range files {
		if kind, ok := KindOf(file); ok && strings.TrimPrefix(file, string(kind)+"-") == name {
			found = append(found, file)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return name
}

// Forget removes the record of a plugin whose file is gone.
func (l LockFile) Forget(name string) error {
	records, err := l.Read()
	if err != nil {
		return err
	}
	delete(records, name)
	return l.write(records)
}

// verified returns the SHA-256 of a plugin's file and its record. The error is ErrChanged if a different file
// was accepted.
func (l LockFile) verified(path string) (sum string, record Locked, err error) {
	records, err := l.Read()
	if err != nil {
		return "", Locked{}, err
	}
	now, err := HashFile(path)
	if err != nil {
		return "", Locked{}, err
	}
	name := filepath.Base(path)
	record = records[name]
	want := record.SHA256
	if want == "" {
		if want, err = l.keptSum(name); err != nil {
			return "", Locked{}, err
		}
	}
	if want != "" && want != now {
		return "", Locked{}, fmt.Errorf("%w: its sha256 was %s and is now %s; if you changed it, run `ropewalk plugin verify --accept %s`", ErrChanged, want, now, name)
	}
	return now, record, nil
}

// Installed returns the configuration of a plugin in the directory by file name, such as auth-okta, with its
// accepted SHA-256. The error wraps ErrChanged if the file has changed. A plugin that has not been accepted yet
// is returned as it is now.
func (l LockFile) Installed(name string) (config.Plugin, error) {
	path := filepath.Join(l.Dir(), name)
	sum, _, err := l.verified(path)
	if err != nil {
		return config.Plugin{}, fmt.Errorf("plugin %s: %w", name, err)
	}
	return config.Plugin{Adapter: adapterOf(path), Path: path, SHA256: sum}, nil
}

// record accepts a plugin at its first use, and reports whether this was the first use.
func (l LockFile) record(path, sum string) (first bool, err error) {
	records, err := l.Read()
	if err != nil {
		return false, err
	}
	name := filepath.Base(path)
	if _, known := records[name]; known {
		return false, nil
	}
	records[name] = Locked{SHA256: sum}
	return true, l.write(records)
}

func (l LockFile) write(records map[string]Locked) error {
	raw, err := json.MarshalIndent(lockDocument{Version: 1, Plugins: records}, "", "  ")
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
