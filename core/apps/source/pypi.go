package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// pypiName is the form of project names (PEP 508).
var pypiName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// fromPyPI takes a PyPI project in one exact version. It is installed into a virtual environment in
// the app's own directory, with uv if it is installed, else with Python's venv and pip. Only wheels
// are used: nothing of the project is executed during the install.
func (r *Resolver) fromPyPI(o Order, pkg registry.Package) (*Candidate, error) {
	if !pypiName.MatchString(pkg.Identifier) {
		return nil, fmt.Errorf("the registry's entry for %s names the PyPI project %.200q, which is not a valid name", pkg.Name, pkg.Identifier)
	}
	command := "${__dirname}/venv/bin/" + pkg.Identifier
	return packageCandidate(o, pkg, bundle.TypeBinary, command, func(ctx context.Context, c *Candidate, dir string) error {
		venv := filepath.Join(dir, "venv")
		if err := r.fillVenv(ctx, c, dir, venv, pkg.Identifier+"=="+packageVersion(pkg)); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(venv, "bin", pkg.Identifier)); err != nil {
			return fmt.Errorf("the PyPI project %s has no command of its own name, so it is not a server", pkg.Identifier)
		}
		// RuntimeArgs are arguments for uvx or Python, which do not run the command here.
		return c.writeManifest(pkg, bundle.TypeBinary, command, arguments(pkg, c.Record.Env, pkg.Args))
	})
}

func (r *Resolver) fillVenv(ctx context.Context, c *Candidate, dir, venv, requirement string) error {
	find := bundle.Lookup(r.HostEnv["PATH"])
	python := filepath.Join(venv, "bin", "python")
	if _, err := find("uv"); err == nil {
		if err := r.runInstaller(ctx, c, dir, "uv", "venv", "--quiet", venv); err != nil {
			return err
		}
		return r.runInstaller(ctx, c, dir, "uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python", python, "--", requirement)
	}
	if err := r.runInstaller(ctx, c, dir, "python3", "-m", "venv", venv); err != nil {
		return err
	}
	return r.runInstaller(ctx, c, dir, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--", requirement)
}
