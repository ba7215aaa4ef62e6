package apps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// pypiName is what PEP 508 allows as a project's name.
var pypiName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// fromPyPI takes a project of PyPI in one exact version. It is installed once, into a virtual
// environment in the app's own directory, with uv where there is one, else with Python's own venv
// and pip. Only wheels are taken: at install nothing of the project is executed.
func (y *Manager) fromPyPI(o order, pkg registry.Package) (*arrival, error) {
	if !pypiName.MatchString(pkg.Identifier) {
		return nil, fmt.Errorf("the registry's entry for %s names the PyPI project %.200q, which is no such name", pkg.Name, pkg.Identifier)
	}
	command := "${__dirname}/venv/bin/" + pkg.Identifier
	return packageArrival(o, pkg, bundle.TypeBinary, command, func(ctx context.Context, f *arrival, dir string) error {
		venv := filepath.Join(dir, "venv")
		if err := y.fillVenv(ctx, f, dir, venv, pkg.Identifier+"=="+packageVersion(pkg)); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(venv, "bin", pkg.Identifier)); err != nil {
			return fmt.Errorf("the PyPI project %s offers no command of its own name, so it is no server", pkg.Identifier)
		}
		// RuntimeArgs are meant for uvx or Python, neither of which runs the command here.
		return f.complete(pkg, bundle.TypeBinary, command, arguments(pkg, f.record.Env, pkg.Args))
	})
}

func (y *Manager) fillVenv(ctx context.Context, f *arrival, dir, venv, requirement string) error {
	find := bundle.Lookup(y.o.HostEnv["PATH"])
	python := filepath.Join(venv, "bin", "python")
	if _, err := find("uv"); err == nil {
		if err := y.run(ctx, f, dir, "uv", "venv", "--quiet", venv); err != nil {
			return err
		}
		return y.run(ctx, f, dir, "uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python", python, "--", requirement)
	}
	if err := y.run(ctx, f, dir, "python3", "-m", "venv", venv); err != nil {
		return err
	}
	return y.run(ctx, f, dir, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--", requirement)
}
