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

// program says how a package manager is run.
type program struct {
	dir, tmp string
	what     string            // what is installed, for errors
	record   core.Installation // its sandbox settings apply, and its secrets are removed from the output
	stdout   io.Writer         // nil to treat it as stderr

	scripts bool // it runs programs of packages
	trusted bool // it sees nothing of a package and runs outside of a sandbox, in tmp instead of dir
}

// runInstaller runs an installer such as npm in dir and waits for it.
func (r *Resolver) runInstaller(ctx context.Context, c *Candidate, dir, command string, args ...string) error {
	return r.install(ctx, c, program{dir: dir}, command, args...)
}

// install runs an installer and waits for it. Its temporary directory is not that of the app: an earlier
// version of the app may run, and exchange what the installer unpacks there.
func (r *Resolver) install(ctx context.Context, c *Candidate, p program, command string, args ...string) (err error) {
	if p.tmp, err = r.scratch(c.Record.Workspace); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup.RemoveAll(p.tmp)) }()
	p.what, p.record = c.Record.BundleName, c.Record
	return r.runProgram(ctx, p, command, args...)
}

// remedy says how to get a package manager.
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

// runProgram runs a package manager and waits for it. Its whole process tree ends when ctx does.
func (r *Resolver) runProgram(ctx context.Context, what program, command string, args ...string) error {
	path := command
	if !filepath.IsAbs(command) {
		var err error
		if path, err = bundle.Lookup(r.HostEnv["PATH"])(command); err != nil {
			return fmt.Errorf("%s is needed to install %s and was not found: %s, or add its directory to the server's PATH", command, what.what, remedy(command))
		}
	}
	if what.trusted {
		what.dir = what.tmp // package managers read settings from their working directory
	}
	env := installerEnvironment(r.HostEnv, managerOf(path), what.tmp)
	profile, err := r.confine(what, path, env)
	if err != nil {
		return err
	}
	output := logs.NewOutput(discard{}, logs.NewRedactor(what.record))
	start := process.Command{Path: path, Args: args, Dir: what.dir, Env: assignments(env), Stderr: output, Sandbox: profile}
	if profile != nil {
		start.Cgroup = process.Cgroup{Tree: r.Confinement.Cgroups, Name: "install-" + what.record.Name, Limits: profile.Limits}
	}
	p, err := process.Start(start)
	if err != nil {
		return err
	}
	_ = p.Stdin().Close()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	stdout := what.stdout
	if stdout == nil {
		stdout = output
	}
	_, _ = io.Copy(stdout, p.Stdout()) // ends with the process tree
	<-p.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if p.Err() == nil {
		return nil
	}
	failure := instance.NewFailure(filepath.Base(command)+" "+p.Err().Error(), output)
	if lacks := remedyFor(failure.Error()); lacks != "" {
		failure.Reason = lacks + " (" + failure.Reason + ")"
		return failure
	}
	return explainClosed(failure, profile)
}

// managerOf returns which package manager a program is: npm, uv or pip.
func managerOf(path string) string {
	if base := filepath.Base(path); base == "npm" || base == "uv" {
		return base
	}
	return "pip"
}

// installerEnvironment is the environment of a package manager. It needs the operator's settings: the home with their
// configuration, proxies and certificates. Those of another manager may have credentials that it has no use for.
func installerEnvironment(host map[string]string, manager, tmp string) map[string]string {
	env := map[string]string{"TMPDIR": tmp}
	for name, value := range host {
		if instance.IsPassedOn(name) || name == "HOME" || isInstallerSetting(name, manager) {
			env[name] = value
		}
	}
	if manager == "npm" { // it waits for 70 s between attempts, also for a certificate that it will never trust
		setDefault(env, "npm_config_fetch_retry_mintimeout", "1000")
		setDefault(env, "npm_config_fetch_retry_factor", "2")
	}
	if current, err := user.Current(); err == nil && env["HOME"] == "" {
		env["HOME"] = current.HomeDir // where the managers themselves look, which the sandbox is to open
	}
	return env
}

// isInstallerSetting reports whether an environment variable is a setting of a package manager, or a proxy.
func isInstallerSetting(name, manager string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains(executingSettings(), upper) {
		return false
	}
	prefix := map[string]string{"npm": "NPM_CONFIG_", "uv": "UV_", "pip": "PIP_"}[manager]
	return strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, prefix)
}

// assignments is an environment as a process takes it.
func assignments(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// discard is a log that is not kept.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
