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
	Version int               `json:"version"`
	Plugins map[string]Locked `json:"plugins"` // by file name, such as auth-okta
}

// Locked is the record of one plugin. Only the SHA256 is known of a plugin that was put into the folder
// by hand; the rest is what `plugin install` found out.
type Locked struct {
	SHA256  string    `json:"sha256"`
	Source  string    `json:"source,omitempty"`  // where the file is from, without passwords
	Version string    `json:"version,omitempty"` // as the plugin reports it
	Signer  string    `json:"signer,omitempty"`  // the minisign public key that its signature was checked with
	Time    time.Time `json:"time,omitzero"`     // when it was installed
}

// Dir is the folder of the plugins.
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

// readOld reads what servers before plugins.lock recorded.
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

// keptSum returns the SHA-256 of the kept copy of a plugin, "" when there is none. It is what was
// accepted last when the record of it is gone.
func (l LockFile) keptSum(name string) (string, error) {
	kept, err := keptFiles(l.Dir(), name)
	if err != nil || len(kept) == 0 {
		return "", err
	}
	return strings.TrimPrefix(filepath.Ext(kept[0]), "."), nil
}

// Accept records the present SHA-256 of the named plugin's file. Of a file that changed, nothing else is
// known any longer.
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

// Record replaces the record of a plugin.
func (l LockFile) Record(name string, record Locked) error {
	records, err := l.Read()
	if err != nil {
		return err
	}
	records[name] = record
	return l.write(records)
}

// FileOf returns the name of the file in the folder that a person means by it or by the name that configurations use:
// okta for auth-okta, unless a plugin of another kind has the same name.
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

// verified returns the SHA-256 of a plugin's file and its record; ErrChanged when another file was accepted.
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
		return "", Locked{}, fmt.Errorf("%w: its sha256 was %s and is %s; if you changed it, run `ropewalk plugin verify --accept %s`", ErrChanged, want, now, name)
	}
	return now, record, nil
}

// Installed returns a plugin of the folder by its file name, such as auth-okta, as what was accepted; an error that wraps
// ErrChanged when its file is another one. A plugin that nobody has accepted yet is returned as it is.
func (l LockFile) Installed(name string) (config.Plugin, error) {
	path := filepath.Join(l.Dir(), name)
	sum, _, err := l.verified(path)
	if err != nil {
		return config.Plugin{}, fmt.Errorf("plugin %s: %w", name, err)
	}
	return config.Plugin{Adapter: adapterOf(path), Path: path, SHA256: sum}, nil
}

// record accepts a plugin at its first use, and reports whether it was the first.
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
