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

// ErrChanged is wrapped by the error for files that are not as they were when the app was installed.
var ErrChanged = errors.New("the files of the app were changed")

// namedFiles bounds how many files an error names.
const namedFiles = 3

// isSealed reports whether an app's files are checked at each start: those that the server put in place.
// The servers of a cluster install a virtual environment each, with other bytes on each.
func (s *Store) isSealed(r core.Installation) bool {
	return s.Owns(r) && (s.o.Cluster == nil || !IsImmovable(r.Dir))
}

// Seal hashes an app's files and returns what the record keeps as core.Installation.Sum; "" when they are
// not checked at each start.
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
	_, _ = sums.WriteTo(&list) // memory
	if err := renameio.WriteFile(source.SumsFile(r.Dir), list.Bytes(), 0o600); err != nil {
		return fmt.Errorf("the hashes of its files cannot be written: %w", err)
	}
	return nil
}

// Verify checks that an app's files are those that were sealed; all of them are read. With mayAdd, the
// app may have added files, as one does that writes beside its code without a sandbox. The error
// wraps ErrChanged and names the first files that differ.
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
	text := strings.Join(names[:min(len(names), namedFiles)], ", ")
	if more := len(names) - namedFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return changed(text)
}

// restoreSums writes the list of an app's files again when it is missing or was changed, as after a restore of the
// state. The caller has found that the files have the hash of the record: nothing else may become the list.
func (s *Store) restoreSums(r core.Installation, now bundle.Sums) {
	if _, err := readSealed(r); err == nil {
		return
	}
	if err := writeSums(r, now); err != nil {
		s.o.Logger.Warn("a later change of the app's files will be found, but not named", "workspace", r.Workspace, "app", r.Name, "error", err)
	}
}

// readSealed reads the list that Seal wrote, if it is still that one.
func readSealed(r core.Installation) (bundle.Sums, error) {
	raw, err := os.ReadFile(source.SumsFile(r.Dir))
	if err != nil {
		return nil, errors.New("the list of their hashes cannot be read, so which ones is not known")
	}
	sums, err := bundle.ReadSums(bytes.NewReader(raw))
	if err != nil || sums.Sum() != r.Sum {
		return nil, errors.New("the list of their hashes was changed too, so which ones is not known")
	}
	return sums, nil
}

func changed(what string) error {
	return fmt.Errorf("%w after it was installed (%s), so it is not started: find out who did that, then update the app or uninstall it and install it again", ErrChanged, what)
}

// removeUnusedSums removes the lists of bundles that are gone.
func (s *Store) removeUnusedSums(bundles string) {
	lists, _ := filepath.Glob(filepath.Join(bundles, "*.sums"))
	for _, list := range lists {
		if !Exists(strings.TrimSuffix(list, ".sums")) {
			s.Remove(list)
		}
	}
}

// incompleteMark is a file next to the directory of a bundle. While it exists, the directory is being
// filled or is complete only until the machine restarts: the file then contains the boot id.
func incompleteMark(dir string) string { return dir + ".unready" }

// isComplete reports whether a directory that exists contains the whole bundle.
func isComplete(dir string) bool {
	mark, err := os.ReadFile(incompleteMark(dir))
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(mark) > 0 && string(mark) == bootID()
}

// bootID identifies this boot of the machine, "" where the system has no such id.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(id)
}
