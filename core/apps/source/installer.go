package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/process"
)

// program says how a package manager is run.
type program struct {
	dir, tmp string
	what     string            // what is installed, for errors
	record   core.Installation // whose secrets are removed from the output
	stdout   io.Writer         // nil to treat it as stderr
}

// runInstaller runs an installer such as npm in dir and waits for it. Its temporary directory is not that
// of the app: an earlier version of the app may run, and exchange what the installer unpacks there.
func (r *Resolver) runInstaller(ctx context.Context, c *Candidate, dir, command string, args ...string) (err error) {
	tmp, err := r.scratch(c.Record.Workspace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	return r.runProgram(ctx, program{dir: dir, tmp: tmp, what: c.Record.BundleName, record: c.Record}, command, args...)
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
	output := logs.NewOutput(discard{}, logs.NewRedactor(what.record))
	p, err := process.Start(process.Command{Path: path, Args: args, Dir: what.dir, Env: installerEnvironment(r.HostEnv, what.tmp), Stderr: output})
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
	return instance.NewFailure(filepath.Base(command)+" "+p.Err().Error(), output)
}

// installerEnvironment is the environment of npm, uv and pip. They run no code of a package, and need
// the operator's settings: the home with their configuration, proxies and certificates.
func installerEnvironment(host map[string]string, tmp string) []string {
	env := []string{"TMPDIR=" + tmp}
	for name, value := range host {
		upper := strings.ToUpper(name)
		if instance.IsPassedOn(name) || name == "HOME" || strings.HasSuffix(upper, "_PROXY") || hasAnyPrefix(upper, "NPM_CONFIG_", "UV_", "PIP_") {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// discard is a log that is not kept.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
