package pluginhost

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
)

// keptName matches the names of kept files: .<kind>-<name>.<sha256>
var keptName = regexp.MustCompile(`^\..+\.[0-9a-f]{64}$`)

// keptPath returns the path where the copy of a plugin's executable is kept.
func (h *Host) keptPath(t target) string {
	return filepath.Join(h.lockFile().Dir(), fmt.Sprintf(".%s-%s.%s", t.kind, t.name, strings.ToLower(t.sha256)))
}

// kept returns t with the path of the copy to start. If the plugin cannot be copied, for example because the disk is
// full, it is started from its own file.
func (h *Host) kept(t target) target {
	if t.path == "" {
		return t
	}
	path, err := h.keep(t)
	if err != nil {
		path = t.path
		h.log.Warn("the plugin is started from its own file, which must not change while it runs", "path", t.path, "error", err)
	}
	t.kept = path
	return t
}

// keep copies a plugin's executable into the plugins directory, named after its SHA-256, and returns the copy's
// path. Every generation starts from the copy, so a file that is replaced, removed or damaged has no effect
// before the next reload.
//
// A script outside the plugins directory is not copied, because it loads files from its own directory.
func (h *Host) keep(t target) (string, error) {
	dir := h.lockFile().Dir()
	kept := h.keptPath(t)
	if has(kept, t.sha256) {
		return kept, nil
	}
	source, err := os.Open(t.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }()
	first := make([]byte, 2)
	n, err := io.ReadFull(source, first)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	info, err := source.Stat()
	if err != nil {
		return "", err
	}
	if executable := info.Mode()&0o100 != 0; !executable || string(first[:n]) == "#!" && filepath.Dir(t.path) != dir {
		return t.path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return kept, copyVerified(kept, io.MultiReader(bytes.NewReader(first[:n]), source), t.sha256)
}

// has reports whether a file exists and has this SHA-256.
func has(path, sum string) bool {
	now, err := HashFile(path)
	return err == nil && strings.EqualFold(now, sum)
}

// Replaced describes the problem if a plugin's file no longer has the configured SHA-256 and a server would start its
// own copy of the accepted file. The text after "; " says what to do. Otherwise Replaced returns "".
func (h *Host) Replaced(kind plugins.Kind, p config.Plugin) string {
	t, err := h.find(kind, p)
	if err != nil {
		return ""
	}
	kept, now := h.replaced(t)
	if kept == "" {
		return ""
	}
	return fmt.Sprintf("the file %s was replaced: its sha256 is %s, not %s. The server starts %s, its copy of the accepted file; "+
		"put the file back, or set sha256 to the new file's and run `ropewalk reload`", t.path, now, t.sha256, kept)
}

// replaced reports a plugin whose file was replaced: it returns the path of the copy that the server kept, and the new
// file's SHA-256. Both are "" if the file is unchanged or no copy was kept.
func (h *Host) replaced(t target) (kept, now string) {
	if t.config.Path == "" {
		return "", ""
	}
	now, err := HashFile(t.path)
	if err != nil || strings.EqualFold(now, t.sha256) || !has(h.keptPath(t), t.sha256) {
		return "", ""
	}
	return h.keptPath(t), now
}

// copyVerified writes source to path if it has this SHA-256.
func copyVerified(path string, source io.Reader, sum string) error {
	out, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o500))
	if err != nil {
		return err
	}
	defer func() { _ = out.Cleanup() }()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, hash), source); err != nil {
		return err
	}
	if now := hex.EncodeToString(hash.Sum(nil)); !strings.EqualFold(now, sum) {
		return fmt.Errorf("its sha256 is %s, not %s", now, sum)
	}
	return out.CloseAtomicallyReplace()
}

// keptFiles returns the paths of a plugin's kept files in a plugins directory.
func keptFiles(dir, name string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var kept []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+name+".") && keptName.MatchString(e.Name()) && e.Type().IsRegular() {
			kept = append(kept, filepath.Join(dir, e.Name()))
		}
	}
	return kept, nil
}

// RemoveCopies removes the copies of a plugin from which servers start it.
func (l LockFile) RemoveCopies(name string) error {
	kept, err := keptFiles(l.Dir(), name)
	for _, path := range kept {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// removeUnused removes the kept files of a plugin that no open plugin runs from. The last file in use is kept when the
// server stops.
func (h *Host) removeUnused(t target) {
	kept, err := keptFiles(h.lockFile().Dir(), fmt.Sprintf("%s-%s", t.kind, t.name))
	if err != nil {
		h.log.Warn("could not remove unused plugin files", "error", err)
		return
	}
	used := map[string]bool{}
	h.mu.Lock()
	for _, s := range h.slots {
		used[s.executable()] = true
	}
	h.mu.Unlock()
	for _, path := range kept {
		if used[path] {
			continue
		}
		if err := os.Remove(path); err != nil {
			h.log.Warn("could not remove an unused plugin file", "path", path, "error", err)
		}
	}
}
