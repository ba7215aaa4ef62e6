package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
)

// KindOf returns the kind that a plugin's file name begins with, as in sessionstore-redis. It returns false if
// there is none.
func KindOf(path string) (plugins.Kind, bool) {
	kind, _, _ := strings.Cut(filepath.Base(path), "-")
	return plugins.Kind(kind), slices.Contains(plugins.Kinds(), plugins.Kind(kind))
}

// Executable returns the configuration for running the file at path as it is now: its absolute path, its
// current sha256, and a name derived from the file name.
func Executable(path string) (config.Plugin, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return config.Plugin{}, err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return config.Plugin{}, fmt.Errorf("%s is a directory; specify the executable in it, such as %s", path, filepath.Join(path, filepath.Base(path)))
	}
	sum, err := HashFile(path)
	if err != nil {
		return config.Plugin{}, err
	}
	return config.Plugin{Adapter: adapterOf(path), Path: path, SHA256: sum}, nil
}

// adapterOf derives an adapter name from a file name, without kind, platform and extension.
func adapterOf(path string) string {
	name := strings.ToLower(plugins.WithoutPlatform(filepath.Base(path)))
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if kind, ok := KindOf(name); ok {
		name = strings.TrimPrefix(name, string(kind)+"-")
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name, "-"); name == "" {
		return "plugin"
	}
	return name
}

// Identity contains what a plugin reports about itself, and the negotiated protocol version.
type Identity struct {
	plugins.Info
	ProtocolVersion int
}

// Identify starts a plugin, requests its Info and stops it. It tries each of kinds until the plugin serves one.
// If kinds is empty, it tries all of them, starting with the one in the file name. The error is the *StartError for
// the first kind.
func (h *Host) Identify(ctx context.Context, p config.Plugin, kinds ...plugins.Kind) (Identity, error) {
	if len(kinds) == 0 {
		kinds = plugins.Kinds()
		if named, ok := KindOf(p.Path); ok {
			kinds = append([]plugins.Kind{named}, slices.DeleteFunc(kinds, func(k plugins.Kind) bool { return k == named })...)
		}
	}
	var first error
	for _, kind := range kinds {
		id, err := h.identify(ctx, kind, p)
		if err == nil {
			return id, nil
		}
		if first == nil {
			first = err
		}
		if failed, ok := errors.AsType[*StartError](err); !ok || !failed.maybeOtherKind {
			return Identity{}, err
		}
	}
	if failed, ok := errors.AsType[*StartError](first); ok && len(kinds) > 1 {
		failed.Reason += fmt.Sprintf(", and it does not serve any of %v", kinds)
	}
	return Identity{}, first
}

func (h *Host) identify(ctx context.Context, kind plugins.Kind, p config.Plugin) (Identity, error) {
	t, err := h.find(kind, p)
	if err != nil {
		return Identity{}, err
	}
	inst, err := h.launch(ctx, t)
	if err != nil {
		return Identity{}, err
	}
	defer inst.kill()
	return Identity{Info: inst.info, ProtocolVersion: inst.protocol}, nil
}
