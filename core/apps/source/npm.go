package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// npmName is the form of npm package names. A match is never a command-line option or a path to a parent directory.
var npmName = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)

// fromNPM describes one exact version of an npm package. It is installed into the app's own directory without running
// the lifecycle scripts of the package or its dependencies, and without packages from git repositories, so none of its
// code runs during the install. The configuration can allow scripts (apps.<name>.installScripts).
func (r *Resolver) fromNPM(o Order, pkg registry.Package) (*Candidate, error) {
	if !npmName.MatchString(pkg.Identifier) {
		return nil, fmt.Errorf("the registry's entry for %s names the npm package %.200q, which is not a valid name", pkg.Name, pkg.Identifier)
	}
	return packageCandidate(o, pkg, bundle.TypeNode, "node", func(ctx context.Context, c *Candidate, dir string) error {
		options := []string{"--ignore-scripts", noGit}
		allowed := o.InstallScripts || r.InstallScripts != nil && r.InstallScripts(c.Record.Workspace, c.Record.Name)
		if allowed {
			options = []string{"--ignore-scripts=false"}
		}
		args := append([]string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--no-update-notifier"}, options...)
		err := r.install(ctx, c, program{dir: dir, scripts: allowed}, "npm", append(args, "--omit=dev", "--save-exact", "--loglevel=error", "--", pkg.Identifier+"@"+packageVersion(pkg))...)
		if err != nil {
			return explainRefusal(err, c.Record.Name)
		}
		entry, runtimes, err := npmEntry(dir, pkg.Identifier, o.Source.Bin)
		if err != nil {
			return err
		}
		if !allowed {
			if c.SkippedScripts, err = packagesWithScripts(ctx, dir); err != nil {
				return err
			}
		}
		script := "${__dirname}/node_modules/" + pkg.Identifier + "/" + entry
		env := c.Record.Env
		return c.writeManifest(pkg, bundle.TypeNode, "node", slices.Concat(arguments(pkg, env, pkg.RuntimeArgs), []string{script}, arguments(pkg, env, pkg.Args)), runtimes)
	})
}

// npmEntry returns the script behind a command of the package that is installed in dir, relative to the package. It
// prefers the command named bin, then the command with the package's name, then the only command. runtimes contains the
// versions of Node.js that the package needs, if it specifies them.
func npmEntry(dir, identifier, bin string) (entry string, runtimes map[string]string, err error) {
	raw, err := readInstalled(dir, path.Join("node_modules", identifier, "package.json"))
	if err != nil {
		return "", nil, fmt.Errorf("the npm package cannot be read: %w", err)
	}
	var manifest struct {
		Bin     json.RawMessage `json:"bin"`
		Engines json.RawMessage `json:"engines"` // in old packages an array
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return "", nil, fmt.Errorf("package.json of %s: %w", identifier, err)
	}
	var one string
	bins := map[string]string{}
	if json.Unmarshal(manifest.Bin, &one) == nil && one != "" {
		bins[path.Base(identifier)] = one
	} else if len(manifest.Bin) == 0 || json.Unmarshal(manifest.Bin, &bins) != nil || len(bins) == 0 {
		return "", nil, fmt.Errorf("the npm package %q has no command, so it is not a server", identifier)
	}
	name, err := chooseCommand(fmt.Sprintf("npm package %q", identifier), path.Base(identifier), bin, slices.Sorted(maps.Keys(bins)))
	if err != nil {
		return "", nil, err
	}
	entry = bins[name]
	if !filepath.IsLocal(filepath.FromSlash(entry)) {
		return "", nil, errors.New("package.json of " + identifier + ": bin points outside the package")
	}
	var engines struct {
		Node string `json:"node"`
	}
	if json.Unmarshal(manifest.Engines, &engines) == nil && bundle.IsVersionRange(engines.Node) {
		runtimes = map[string]string{"node": engines.Node}
	}
	return path.Clean(entry), runtimes, nil
}

// packagesWithScripts returns the names of the packages in dir whose install scripts were not run, including packages
// in nested node_modules directories.
func packagesWithScripts(ctx context.Context, dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || entry.Name() != "package.json" || !isPackageDir(filepath.Dir(file)) {
			return err
		}
		name, err := packageWithScripts(dir, filepath.Dir(file))
		if name != "" {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// isPackageDir reports whether npm has installed a package in this directory.
func isPackageDir(dir string) bool {
	parent := filepath.Dir(dir)
	if strings.HasPrefix(filepath.Base(parent), "@") {
		parent = filepath.Dir(parent)
	}
	return filepath.Base(parent) == "node_modules"
}

// packageWithScripts returns the name of the package in the directory at, inside dir, if it has install scripts.
// Otherwise it returns "".
func packageWithScripts(dir, at string) (name string, err error) {
	file, err := filepath.Rel(dir, filepath.Join(at, "package.json"))
	if err != nil {
		return "", err
	}
	raw, err := readInstalled(dir, file)
	if err != nil {
		return "", err
	}
	var manifest struct {
		Name    string            `json:"name"`
		Scripts map[string]string `json:"scripts"`
	}
	valid := json.Unmarshal(raw, &manifest) == nil // npm handles invalid manifests
	_, missing := os.Lstat(filepath.Join(at, "binding.gyp"))
	if valid && (missing == nil || manifest.Scripts["preinstall"]+manifest.Scripts["install"]+manifest.Scripts["postinstall"] != "") {
		return manifest.Name, nil
	}
	return "", nil
}
