package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// ErrChanged is wrapped by the error for files that have changed since the app was installed.
var ErrChanged = errors.New("the files of the app were changed")

// maxNamedFiles limits how many files an error names.
const maxNamedFiles = 3

// isSealed reports whether an app's files are checked at each start. That is the case if the server put them in place.
// In a cluster, virtual environments are not checked: each server installs its own, and the bytes differ.
func (s *Store) isSealed(r core.Installation) bool {
	return s.Owns(r) && (s.o.Cluster == nil || !IsImmovable(r.Dir))
}

// Seal hashes an app's files and returns the value for core.Installation.Sum, or "" if the files are not checked at
// each start.
func (s *Store) Seal(ctx context.Context, r core.Installation) (sum string, err error) {
	if !s.isSealed(r) {
		return "", nil
	}
	sums, err := bundle.SumsOf(ctx, r.Dir)
	if err != nil {
		return "", fmt.Errorf("its files cannot be hashed: %w", err)
	}
	if err := writeSums(r, sums); err != nil {
		return "", err
	}
	return sums.Sum(), nil
}

func writeSums(r core.Installation, sums bundle.Sums) error {
	var list bytes.Buffer
	_, _ = sums.WriteTo(&list) // a write to memory cannot fail
	if err := renameio.WriteFile(source.SumsFile(r.Dir), list.Bytes(), 0o600); err != nil {
		return fmt.Errorf("the hashes of its files cannot be written: %w", err)
	}
	return nil
}

// Verify checks that an app's files are the ones that were sealed. It reads all of them. If mayAdd is set, the app may
// have added files, as an app without a sandbox does when it writes next to its code. The error wraps ErrChanged and
// lists the first files that differ.
func (s *Store) Verify(ctx context.Context, r core.Installation, mayAdd bool) error {
	if r.Sum == "" || !s.isSealed(r) {
		return nil
	}
	now, err := bundle.SumsOf(ctx, r.Dir)
	if err != nil {
		return fmt.Errorf("its files cannot be hashed: %w", err)
	}
	if now.Sum() == r.Sum {
		s.restoreSums(r, now)
		return nil
	}
	sealed, err := readSealed(r)
	if err != nil {
		return changed(err.Error())
	}
	added, others := sealed.Difference(now)
	if len(others) == 0 && mayAdd {
		return nil
	}
	names := slices.Concat(others, added)
	text := strings.Join(names[:min(len(names), maxNamedFiles)], ", ")
	if more := len(names) - maxNamedFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return changed(text)
}

// restoreSums writes the list of an app's files again if it is missing or changed, for example after a restore of the
// state. The caller must have checked that the files match the hash in the record.
func (s *Store) restoreSums(r core.Installation, now bundle.Sums) {
	if _, err := readSealed(r); err == nil {
		return
	}
	if err := writeSums(r, now); err != nil {
		s.o.Logger.Warn("a later change to the app's files will be detected, but the files cannot be named", "workspace", r.Workspace, "app", r.Name, "error", err)
	}
}

// readSealed reads the list that Seal wrote. It fails if the list no longer matches the record.
func readSealed(r core.Installation) (bundle.Sums, error) {
	raw, err := os.ReadFile(source.SumsFile(r.Dir))
	if err != nil {
		return nil, errors.New("the list of their hashes cannot be read, so it is not known which ones")
	}
	sums, err := bundle.ReadSums(bytes.NewReader(raw))
	if err != nil || sums.Sum() != r.Sum {
		return nil, errors.New("the list of their hashes was changed too, so it is not known which ones")
	}
	return sums, nil
}

func changed(what string) error {
	return fmt.Errorf("%w after it was installed (%s), so it is not started: find out who changed them, then update the app or uninstall it and install it again", ErrChanged, what)
}

// removeUnusedSums removes the hash lists of bundles that no longer exist.
func (s *Store) removeUnusedSums(bundles string) {
	lists, _ := filepath.Glob(filepath.Join(bundles, "*.sums"))
	for _, list := range lists {
		if !Exists(strings.TrimSuffix(list, ".sums")) {
			s.Remove(list)
		}
	}
}

// incompleteMark returns the path of a file next to a bundle's directory. While the file exists, the directory is still
// being filled, or it is guaranteed to be complete only until the machine restarts. In the second case the file
// contains the boot ID.
func incompleteMark(dir string) string { return dir + ".unready" }

// isComplete reports whether a directory contains the whole bundle. The directory must exist.
func isComplete(dir string) bool {
	mark, err := os.ReadFile(incompleteMark(dir))
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(mark) > 0 && string(mark) == bootID()
}

// bootID identifies the current boot of the machine. It is "" if the system does not provide an ID.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(id)
}
