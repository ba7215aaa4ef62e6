package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// addLayers lets an app write into its bundle and into the packages that the bundle links to, because some programs
// keep a lock file or data next to their code. The changes go to a layer that belongs to the installation.
func addLayers(p *sandbox.Profile, spec Spec, dirs []string) error {
	if spec.Layer == "" || p.Level < sandbox.LevelNamespaces {
		return nil
	}
	for i, dir := range dirs {
		state := filepath.Join(spec.Layer, strconv.Itoa(i))
		layer := sandbox.Layer{Dir: dir, Upper: filepath.Join(state, "upper"), Work: filepath.Join(state, "work")}
		if err := prepareLayer(layer, p.UID); err != nil {
			return fmt.Errorf("the layer for its bundle cannot be created: %w", err)
		}
		p.Layers = append(p.Layers, layer)
	}
	return nil
}

// prepareLayer creates the directories of a layer if they do not exist. If the app runs as its own user, that user can
// write only into directories that it owns. The layer therefore gets a copy of the bundle's directories, without their
// files, and the kernel merges it with the original.
func prepareLayer(l sandbox.Layer, uid int) error {
	if _, err := os.Stat(l.Work); err == nil {
		return permit(l.Upper, 0o755) // the app may have removed permissions
	}
	if err := os.MkdirAll(l.Upper, 0o755); err != nil { //nolint:gosec // the app sees this mode; the home itself is closed
		return err
	}
	if uid != 0 {
		if err := ownDirectories(l, uid); err != nil {
			return errors.Join(err, os.RemoveAll(l.Upper))
		}
	}
	err := os.Mkdir(l.Work, 0o700) // last, because it marks the layer as complete
	if errors.Is(err, fs.ErrExist) {
		return nil // another start of the app has created it
	}
	return err
}

// ownDirectories creates the bundle's directories in the layer, without their files, and makes the app's user their
// owner. It uses os.Root to stay within the layer, because an app that was started at the same time may already be
// changing the layer.
func ownDirectories(l sandbox.Layer, uid int) (err error) {
	upper, err := os.OpenRoot(l.Upper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upper.Close()) }()
	return filepath.WalkDir(l.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		rest, err := filepath.Rel(l.Dir, path)
		if err != nil {
			return err
		}
		if err := upper.MkdirAll(rest, 0o755); err != nil {
			return err
		}
		return upper.Lchown(rest, uid, uid)
	})
}
