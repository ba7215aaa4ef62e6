package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// LaunchInput is everything besides the manifest that determines what is started.
type LaunchInput struct {
	Dir    string                            // the bundle's directory, absolute; never written to
	Home   string                            // the value of ${HOME}, and the parent of its directories
	Data   string                            // the app's own writable directory
	OS     string                            // a runtime.GOOS; "" means this system
	Base   map[string]string                 // the environment every app gets
	Values map[string]core.Secret            // as provided at installation; see the package comment
	Lookup func(name string) (string, error) // finds a program by its bare name; see Lookup
}

// Launch is one process to start. Env is complete and contains secrets in clear text.
type Launch struct {
	Path string
	Args []string // without the program itself
	Env  []string // NAME=value, sorted by name
	Dir  string   // the working directory
}

// String omits arguments and environment, because both may contain secrets.
func (l Launch) String() string {
	return fmt.Sprintf("%s (%d arguments, %d variables)", l.Path, len(l.Args), len(l.Env))
}

// Variables returns the environment by name.
func (l Launch) Variables() map[string]string {
	env := make(map[string]string, len(l.Env))
	for _, variable := range l.Env {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env
}

// GoString is String, for %#v.
func (l Launch) GoString() string { return l.String() }

// Launch determines the process for a bundle. The environment consists of in.Base, the manifest's env and the
// environment variables of in.Values; later ones win.
//
// Errors: core.CodeCredentialsRequired with details {"missing": []MissingValue}, core.CodeBadRequest for a
// rejected value, and plain errors for a platform that the bundle does not support, a runtime that is not
// found, or a missing program.
func (m *Manifest) Launch(in LaunchInput) (Launch, error) {
	if in.OS == "" {
		in.OS = runtime.GOOS
	}
	if err := m.supports(in.OS); err != nil {
		return Launch{}, err
	}
	if err := m.CheckValues(in.Values); err != nil {
		return Launch{}, err
	}
	if missing := m.Missing(in.Values); len(missing) > 0 {
		return Launch{}, CredentialsRequired(missing)
	}
	x, environ, err := m.expander(in)
	if err != nil {
		return Launch{}, err
	}
	return m.command(in.OS).launch(x, in, environ)
}

// CredentialsRequired returns the error for missing values (docs/api.md 3).
func CredentialsRequired(missing []MissingValue) error {
	names := make([]string, len(missing))
	for i, v := range missing {
		names[i] = v.Name
	}
	return core.Errorf(core.CodeCredentialsRequired, "the bundle needs settings that were not provided: %s", strings.Join(names, ", ")).
		WithDetails(map[string]any{"missing": missing})
}

// expander collects the values of m's variables, and the environment variables of in.Values.
func (m *Manifest) expander(in LaunchInput) (*expander, map[string]core.Secret, error) {
	x := newExpander(in.Dir, in.Home)
	supplied, environ := m.split(in.Values)
	for key, f := range m.UserConfig {
		x.multi[key] = f.Multiple
		x.fields[key] = nil
		if value := supplied[key]; value != "" {
			x.fields[key] = f.splitValue(value)
			continue
		}
		defaults, _ := f.defaults()
		for _, d := range defaults {
			text, err := newExpander(in.Dir, in.Home).text(d)
			if err != nil {
				return nil, nil, fmt.Errorf("user_config.%s.default %w", key, err)
			}
			x.fields[key] = append(x.fields[key], text)
		}
	}
	return x, environ, nil
}

// command returns the manifest's command on one platform, before its variables are expanded. If there is
// no mcp_config, it is the entry point, run by the server type's own runtime.
func (m *Manifest) command(goos string) CommandPart {
	if m.Server.MCPConfig == nil {
		return m.Server.fallback()
	}
	base := m.Server.MCPConfig
	part := CommandPart{base.Command, base.Args, base.Dir, maps.Clone(base.Env)}
	if part.Env == nil {
		part.Env = map[string]string{}
	}
	over := base.PlatformOverrides[platformName(goos)]
	if over.Command != "" {
		part.Command = over.Command
	}
	if over.Args != nil {
		part.Args = over.Args
	}
	if over.Dir != "" {
		part.Dir = over.Dir
	}
	maps.Copy(part.Env, over.Env)
	if m.Server.Type == TypePython || m.Server.Type == TypeUV {
		setDefault(part.Env, "PYTHONDONTWRITEBYTECODE", "1") // nothing may be written to the bundle's directory
	}
	return part
}

func (s Server) fallback() CommandPart {
	entry := "${__dirname}/" + s.EntryPoint
	switch s.Type {
	case TypeNode:
		return CommandPart{Command: "node", Args: []string{entry}}
	case TypePython:
		libs := "${__dirname}/server/lib" + string(filepath.ListSeparator) + "${__dirname}/lib"
		return CommandPart{Command: "python3", Args: []string{entry},
			Env: map[string]string{"PYTHONPATH": libs, "PYTHONDONTWRITEBYTECODE": "1"}}
	case TypeUV:
		return CommandPart{Command: "uv", Args: []string{"run", "--directory", "${__dirname}", s.EntryPoint},
			Env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}}
	default:
		return CommandPart{Command: entry}
	}
}

func (p CommandPart) launch(x *expander, in LaunchInput, environ map[string]core.Secret) (Launch, error) {
	command, err := x.text(p.Command)
	if err != nil {
		return Launch{}, fmt.Errorf("server.mcp_config.command %w", err)
	}
	args, err := x.args(p.Args)
	if err != nil {
		return Launch{}, err
	}
	own, err := x.env(p.Env)
	if err != nil {
		return Launch{}, err
	}
	dir, err := x.text(p.Dir)
	if err != nil {
		return Launch{}, fmt.Errorf("server.mcp_config.cwd %w", err)
	}
	if dir = cmp.Or(dir, in.Dir); !filepath.IsAbs(dir) && dir != "" {
		dir = filepath.Join(in.Dir, dir)
	}
	path, err := FindProgram(command, cmp.Or(in.Dir, dir), in.Lookup)
	if err != nil {
		return Launch{}, fmt.Errorf("server.mcp_config.command: %w", err)
	}
	env := map[string]string{}
	if filepath.Base(path) == "uv" && in.Data != "" {
		env["UV_PROJECT_ENVIRONMENT"] = filepath.Join(in.Data, "venv") // uv would write into the bundle
	}
	maps.Copy(env, in.Base)
	maps.Copy(env, own)
	for name, value := range environ {
		env[name] = value.Reveal()
	}
	return Launch{Path: path, Args: args, Env: list(env), Dir: dir}, nil
}

// FindProgram finds the program to execute: a bare name through find, a path as is, relative to dir. The error
// wraps ErrNoProgram if there is none.
func FindProgram(command, dir string, find func(name string) (string, error)) (string, error) {
	if !strings.ContainsRune(command, filepath.Separator) {
		return lookup(command, find)
	}
	path := command
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s", ErrNoProgram, path)
	case err != nil:
		return "", err
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return "", fmt.Errorf("%s is not an executable file: set its executable bit before packing", path)
	}
	return path, nil
}

func setDefault(env map[string]string, name, value string) {
	if _, ok := env[name]; !ok {
		env[name] = value
	}
}

func list(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
