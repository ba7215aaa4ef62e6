package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// npmName is what npm allows as a package's name; nothing in it can be an option or leave a directory.
var npmName = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)

// fromNPM takes a package of npm in one exact version. It is installed once, into the app's own
// directory, and without running the scripts of the package or of what it depends on: at install
// nothing of it is executed.
func (y *Manager) fromNPM(o order, pkg registry.Package) (*arrival, error) {
	if !npmName.MatchString(pkg.Identifier) {
		return nil, fmt.Errorf("the registry's entry for %s names the npm package %.200q, which is no such name", pkg.Name, pkg.Identifier)
	}
	return packageArrival(o, pkg, bundle.TypeNode, "node", func(ctx context.Context, f *arrival, dir string) error {
		err := y.run(ctx, f, dir, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-update-notifier",
			"--ignore-scripts", "--omit=dev", "--save-exact", "--loglevel=error", "--", pkg.Identifier+"@"+packageVersion(pkg))
		if err != nil {
			return err
		}
		entry, err := npmEntry(filepath.Join(dir, "node_modules", filepath.FromSlash(pkg.Identifier)), pkg.Identifier)
		if err != nil {
			return err
		}
		script := "${__dirname}/node_modules/" + pkg.Identifier + "/" + entry
		env := f.record.Env
		return f.complete(pkg, bundle.TypeNode, "node", slices.Concat(arguments(pkg, env, pkg.RuntimeArgs), []string{script}, arguments(pkg, env, pkg.Args)))
	})
}

// npmEntry is the script that a package offers as its command, relative to the package: the one
// that is named like the package, or the only one.
func npmEntry(dir, identifier string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", fmt.Errorf("npm installed nothing that can be read: %w", err)
	}
	var said struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return "", fmt.Errorf("package.json of %s: %w", identifier, err)
	}
	var one string
	bins := map[string]string{}
	if json.Unmarshal(said.Bin, &one) == nil && one != "" {
		bins[path.Base(identifier)] = one
	} else if len(said.Bin) == 0 || json.Unmarshal(said.Bin, &bins) != nil || len(bins) == 0 {
		return "", fmt.Errorf("the npm package %s offers no command, so it is no server", identifier)
	}
	entry, ok := bins[path.Base(identifier)]
	if !ok {
		names := slices.Sorted(maps.Keys(bins))
		if len(names) > 1 {
			return "", fmt.Errorf("the npm package %s offers several commands (%v) and none is named like it", identifier, names)
		}
		entry = bins[names[0]]
	}
	if !filepath.IsLocal(filepath.FromSlash(entry)) {
		return "", errors.New("package.json of " + identifier + ": bin leaves the package")
	}
	return path.Clean(entry), nil
}
