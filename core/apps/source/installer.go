package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/process"
)

// program describes one run of a package manager.
type program struct {
	dir, tmp string
	what     string            // what is being installed, for error messages
	record   core.Installation // its sandbox settings apply, and its secrets are removed from the output
	stdout   io.Writer         // nil to treat it like stderr

	scripts bool // it runs programs that come with packages
	trusted bool // it does not read packages; it runs outside the sandbox, in tmp instead of dir
}

// runInstaller runs a package manager such as npm in dir and waits for it to exit.
func (r *Resolver) runInstaller(ctx context.Context, c *Candidate, dir, command string, args ...string) error {
	return r.install(ctx, c, program{dir: dir}, command, args...)
}

// install runs a package manager and waits for it to exit. The package manager gets its own temporary directory, not
// the app's, because an earlier version of the app may be running, and could replace what is unpacked there.
func (r *Resolver) install(ctx context.Context, c *Candidate, p program, command string, args ...string) (err error) {
	if p.tmp, err = r.scratch(c.Record.Workspace); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup.RemoveAll(p.tmp)) }()
	p.what, p.record = c.Record.BundleName, c.Record
	return r.runProgram(ctx, p, command, args...)
}

// remedy returns how to get a package manager.
func remedy(command string) string {
	switch command {
	case "npm", "npx", "node":
		return "install Node.js 20 or newer, which contains it"
	case "python3", "python":
		return "install Python 3.10 or newer, or uv"
	case "uv", "uvx":
		return "install uv"
	}
	return "install it"
}

// runProgram runs a package manager and waits for it to exit. If ctx ends first, the whole process tree is killed.
func (r *Resolver) runProgram(ctx context.Context, run program, command string, args ...string) error {
	path := command
	if !filepath.IsAbs(command) {
		var err error
		if path, err = bundle.Lookup(r.HostEnv["PATH"])(command); err != nil {
			return fmt.Errorf("%s is needed to install %s and was not found: %s, or add its directory to the server's PATH", command, run.what, remedy(command))
		}
	}
	if run.trusted {
		run.dir = run.tmp // package managers read settings from their working directory
	}
	env := installerEnvironment(r.HostEnv, managerOf(path), run.tmp)
	profile, err := r.confine(run, path, env)
	if err != nil {
		return err
	}
	output := logs.NewOutput(discard{}, logs.NewRedactor(run.record))
	start := process.Command{Path: path, Args: args, Dir: run.dir, Env: assignments(env), Stderr: output, Sandbox: profile}
	if profile != nil {
		start.Cgroup = process.Cgroup{Tree: r.Confinement.Cgroups, Name: "install-" + run.record.Name, Limits: profile.Limits}
	}
	p, err := process.Start(start)
	if err != nil {
		return err
	}
	_ = p.Stdin().Close()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	stdout := run.stdout
	if stdout == nil {
		stdout = output
	}
	_, _ = io.Copy(stdout, p.Stdout()) // returns when the process tree has exited
	<-p.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if p.Err() == nil {
		return nil
	}
	failure := instance.NewFailure(filepath.Base(command)+" "+p.Err().Error(), output)
	if cause := remedyFor(failure.Error()); cause != "" {
		failure.Reason = cause + " (" + failure.Reason + ")"
		return failure
	}
	return explainDenied(failure, profile)
}

// managerOf returns the package manager that a program belongs to: npm, uv or pip.
func managerOf(path string) string {
	if base := filepath.Base(path); base == "npm" || base == "uv" {
		return base
	}
	return "pip"
}

// installerEnvironment returns the environment of a package manager. It contains the operator's settings: the home with
// the configuration, proxies and certificates. It omits the settings of other package managers, which may contain
// credentials that this one does not need.
func installerEnvironment(host map[string]string, manager, tmp string) map[string]string {
	env := map[string]string{"TMPDIR": tmp}
	for name, value := range host {
		if instance.IsPassedOn(name) || name == "HOME" || isInstallerSetting(name, manager) {
			env[name] = value
		}
	}
	if manager == "npm" { // by default its pauses add up to 70 s, even if it does not trust the certificate
		setDefault(env, "npm_config_fetch_retry_mintimeout", "1000")
		setDefault(env, "npm_config_fetch_retry_factor", "2")
	}
	if env["HOME"] == "" {
		env["HOME"] = homeOf(user.Current, tmp)
	}
	return env
}

// homeOf returns the home of the server's user. Package managers look for their settings there, so the sandbox must
// allow it. A user without an entry in /etc/passwd, as in a container or a systemd unit with DynamicUser=, has no home.
// Without one, npm would fail, so homeOf returns tmp.
func homeOf(current func() (*user.User, error), tmp string) string {
	if u, err := current(); err == nil && u.HomeDir != "" {
		return u.HomeDir
	}
	return tmp
}

// isInstallerSetting reports whether an environment variable is a setting of this package manager, or a proxy.
func isInstallerSetting(name, manager string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains([]string{"UV_COMPILE_BYTECODE", "UV_LINK_MODE"}, upper) {
		return false
	}
	prefix := map[string]string{"npm": "NPM_CONFIG_", "uv": "UV_", "pip": "PIP_"}[manager]
	return strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, prefix)
}

// assignments returns an environment as sorted name=value strings.
func assignments(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// discard is a log that drops everything.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
