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

// addLayers lets an app write into its bundle and the packages that it links to: some programs keep a
// lock file or their data beside their code. The changes go to a layer of the installation.
func addLayers(p *sandbox.Profile, spec Spec, dirs []string) error {
	if spec.Layer == "" || p.Level < sandbox.LevelNamespaces {
		return nil
	}
	for i, dir := range dirs {
		state := filepath.Join(spec.Layer, strconv.Itoa(i))
		layer := sandbox.Layer{Dir: dir, Upper: filepath.Join(state, "upper"), Work: filepath.Join(state, "work")}
		if err := prepareLayer(layer, p.UID); err != nil {
			return fmt.Errorf("the layer of its bundle cannot be made: %w", err)
		}
		p.Layers = append(p.Layers, layer)
	}
	return nil
}

// prepareLayer makes the directories of a layer, unless it has them. A user of its own may write only
// into directories that it owns: the layer gets all directories of the bundle, which the kernel merges
// with those below.
func prepareLayer(l sandbox.Layer, uid int) error {
	if _, err := os.Stat(l.Work); err == nil {
		return permit(l.Upper, 0o755) // the app may have taken them away
	}
	if err := os.MkdirAll(l.Upper, 0o755); err != nil { //nolint:gosec // what the app sees; the home is closed
		return err
	}
	if uid != 0 {
		if err := ownDirectories(l, uid); err != nil {
			return errors.Join(err, os.RemoveAll(l.Upper))
		}
	}
	return os.Mkdir(l.Work, 0o700) // last: it says that all the rest is done
}

func ownDirectories(l sandbox.Layer, uid int) error {
	return filepath.WalkDir(l.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		rest, err := filepath.Rel(l.Dir, path)
		if err != nil {
			return err
		}
		at := filepath.Join(l.Upper, rest)
		if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // as above
			return err
		}
		return os.Lchown(at, uid, uid)
	})
}
