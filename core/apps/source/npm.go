package source

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

// npmName is the form of npm package names. A match is never a command-line option or a path upwards.
var npmName = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)

// fromNPM takes an npm package in one exact version. It is installed into the app's own directory
// without running the lifecycle scripts of the package or its dependencies, unless the configuration
// allows it (apps.<name>.installScripts): nothing of it is executed during the install.
func (r *Resolver) fromNPM(o Order, pkg registry.Package) (*Candidate, error) {
	if !npmName.MatchString(pkg.Identifier) {
		return nil, fmt.Errorf("the registry's entry for %s names the npm package %.200q, which is not a valid name", pkg.Name, pkg.Identifier)
	}
	return packageCandidate(o, pkg, bundle.TypeNode, "node", func(ctx context.Context, c *Candidate, dir string) error {
		scripts := "--ignore-scripts"
		allowed := o.InstallScripts || r.InstallScripts != nil && r.InstallScripts(c.Record.Workspace, c.Record.Name)
		if allowed {
			scripts = "--ignore-scripts=false"
		}
		err := r.runInstaller(ctx, c, dir, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-update-notifier",
			scripts, "--omit=dev", "--save-exact", "--loglevel=error", "--", pkg.Identifier+"@"+packageVersion(pkg))
		if err != nil {
			return err
		}
		entry, err := npmEntry(filepath.Join(dir, "node_modules", filepath.FromSlash(pkg.Identifier)), pkg.Identifier)
		if err != nil {
			return err
		}
		if !allowed {
			if c.SkippedScripts, err = packagesWithScripts(filepath.Join(dir, "node_modules")); err != nil {
				return err
			}
		}
		script := "${__dirname}/node_modules/" + pkg.Identifier + "/" + entry
		env := c.Record.Env
		return c.writeManifest(pkg, bundle.TypeNode, "node", slices.Concat(arguments(pkg, env, pkg.RuntimeArgs), []string{script}, arguments(pkg, env, pkg.Args)))
	})
}

// npmEntry returns the script of a package's command, relative to the package: of the command with
// the package's name, or of the only one.
func npmEntry(dir, identifier string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", fmt.Errorf("the npm package cannot be read: %w", err)
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return "", fmt.Errorf("package.json of %s: %w", identifier, err)
	}
	var one string
	bins := map[string]string{}
	if json.Unmarshal(manifest.Bin, &one) == nil && one != "" {
		bins[path.Base(identifier)] = one
	} else if len(manifest.Bin) == 0 || json.Unmarshal(manifest.Bin, &bins) != nil || len(bins) == 0 {
		return "", fmt.Errorf("the npm package %s has no command, so it is not a server", identifier)
	}
	entry, ok := bins[path.Base(identifier)]
	if !ok {
		names := slices.Sorted(maps.Keys(bins))
		if len(names) > 1 {
			return "", fmt.Errorf("the npm package %s has several commands (%v) and none with its own name", identifier, names)
		}
		entry = bins[names[0]]
	}
	if !filepath.IsLocal(filepath.FromSlash(entry)) {
		return "", errors.New("package.json of " + identifier + ": bin points outside the package")
	}
	return path.Clean(entry), nil
}

// packagesWithScripts returns the installed packages whose install scripts were not run, those in
// node_modules of other packages included.
func packagesWithScripts(modules string) (names []string, err error) {
	manifests, err := filepath.Glob(filepath.Join(modules, "*", "package.json"))
	if err != nil {
		return nil, err
	}
	scoped, err := filepath.Glob(filepath.Join(modules, "@*", "*", "package.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Concat(manifests, scoped) {
		name, err := packageWithScripts(file)
		if err != nil {
			return nil, err
		}
		if name != "" {
			names = append(names, name)
		}
		nested, err := packagesWithScripts(filepath.Join(filepath.Dir(file), "node_modules"))
		if err != nil {
			return nil, err
		}
		names = append(names, nested...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// packageWithScripts returns the name of a package if it has install scripts, and "" otherwise.
func packageWithScripts(file string) (name string, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var manifest struct {
		Name    string            `json:"name"`
		Scripts map[string]string `json:"scripts"`
	}
	valid := json.Unmarshal(raw, &manifest) == nil // npm judges the others
	_, missing := os.Stat(filepath.Join(filepath.Dir(file), "binding.gyp"))
	if valid && (missing == nil || manifest.Scripts["preinstall"]+manifest.Scripts["install"]+manifest.Scripts["postinstall"] != "") {
		return manifest.Name, nil
	}
	return "", nil
}
