package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// packageVersionForm is the form of package versions and tags. A match is never a command-line option, a range or a
// URL.
var packageVersionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+!_-]*$`)

// fromNPMName resolves an npm package that was named directly, without a registry entry. npm chooses the version.
func (r *Resolver) fromNPMName(ctx context.Context, o Order) (*Candidate, error) {
	o.report("resolving", "npm package "+o.Source.Ref)
	wanted := cmp.Or(o.Version, "latest")
	out, err := r.query(ctx, o, "npm", "view", "--json", "--loglevel=error", "--", o.Source.Ref+"@"+wanted, "version")
	if failure, ok := errors.AsType[*instance.Failure](err); ok && slices.ContainsFunc(failure.Output, isNotFound) {
		return nil, fmt.Errorf("npm has no version %s of the package %q, or the package needs a login", wanted, o.Source.Ref)
	}
	if err != nil {
		return nil, err
	}
	var version string
	if err := json.Unmarshal(out, &version); err != nil || version == "" {
		return nil, fmt.Errorf("npm has no version %s of the package %q", wanted, o.Source.Ref)
	}
	return r.fromNPM(o, directPackage(o, registry.KindNPM, version))
}

// isNotFound reports whether a line of npm's output reports that the registry returned 404.
func isNotFound(line string) bool { return strings.HasPrefix(line, "npm error 404") }

// fromPyPIName resolves a PyPI project that was named directly, without a registry entry. If no version was requested,
// uv or pip chooses it.
func (r *Resolver) fromPyPIName(ctx context.Context, o Order) (*Candidate, error) {
	o.report("resolving", "PyPI project "+o.Source.Ref)
	version := o.Version
	if version == "" {
		var err error
		if version, err = r.newestPyPI(ctx, o); err != nil {
			return nil, err
		}
	}
	return r.fromPyPI(o, directPackage(o, registry.KindPyPI, version))
}

// firstVersion matches the first version in a range of Python versions.
var firstVersion = regexp.MustCompile(`[0-9]+\.[0-9]+`)

func (r *Resolver) newestPyPI(ctx context.Context, o Order) (string, error) {
	if r.hasUV() {
		args := []string{"pip", "compile", "--quiet", "--only-binary", ":all:", "--no-deps", "--no-header", "--no-annotate", requirements}
		out, err := r.query(ctx, o, "uv", args...)
		if needed := firstVersion.FindString(neededPython(err)); needed != "" { // fillVenv finds or fetches it
			out, err = r.query(ctx, o, "uv", append(args, "--python-version", needed)...)
		}
		if err != nil {
			return "", err
		}
		if _, version, ok := strings.Cut(strings.TrimSpace(string(out)), "=="); ok {
			return version, nil
		}
		return "", fmt.Errorf("PyPI has no project %q", o.Source.Ref)
	}
	out, err := r.query(ctx, o, "python3", pipInstall("--dry-run", "--no-deps", "--ignore-installed", "--report", "-", "-r", requirements)...)
	if err != nil {
		return "", explainPython(err)
	}
	var report struct {
		Install []struct {
			Metadata struct {
				Version string `json:"version"`
			} `json:"metadata"`
		} `json:"install"`
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Install) == 0 {
		return "", fmt.Errorf("PyPI has no project %q", o.Source.Ref)
	}
	return report.Install[0].Metadata.Version, nil
}

// requirements is the name of the file with the project that query asks about.
const requirements = "requirements.in"

// query runs a package manager to get information about a package, and returns its standard output.
func (r *Resolver) query(ctx context.Context, o Order, command string, args ...string) ([]byte, error) {
	dir, err := r.scratch(o.Workspace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cleanup.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, requirements), []byte(o.Source.Ref+"\n"), 0o600); err != nil {
		return nil, err
	}
	name := o.ServerName
	if !o.Exact {
		if name, err = serverName(name, Project(o.Source.Ref)); err != nil {
			return nil, err
		}
	}
	p := program{dir: dir, tmp: dir, what: o.Source.Ref, record: core.Installation{Workspace: o.Workspace, Name: name, Env: o.Env}}
	if command == "uv" {
		if err := r.ensurePython(ctx, p); err != nil {
			return nil, err
		}
	}
	var out limitedBuffer
	p.stdout = &out
	err = r.runProgram(ctx, p, command, args...)
	return out.data, err
}

// limitedBuffer keeps the first MiB that is written to it and drops the rest.
type limitedBuffer struct{ data []byte }

// Write never returns an error.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	const limit = 1 << 20
	b.data = append(b.data, p[:min(len(p), limit-len(b.data))]...)
	return len(p), nil
}

// directPackage describes a package that has no registry entry.
func directPackage(o Order, kind registry.Kind, version string) registry.Package {
	return registry.Package{Kind: kind, Name: Project(o.Source.Ref), Identifier: o.Source.Ref, Version: version, Args: o.Args, Variables: ownVariables(o)}
}

// ownVariables returns the variables of an order that only its bundle could declare, and those that its arguments refer
// to. Whoever names a package or a command chooses the code that runs, so they may also set the variables that it reads.
func ownVariables(o Order) (all []registry.Variable) {
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		given := map[string]core.Secret{name: o.Env[name]}
		if refersTo(o.Args, name) || bundle.CheckEnv(given) != nil && bundle.CheckEnv(given, name) == nil {
			all = append(all, registry.Variable{Name: name, Secret: true})
		}
	}
	return all
}

// fromCommand describes a program that is installed on the server. It generates the manifest.
func (r *Resolver) fromCommand(o Order) (*Candidate, error) {
	if _, err := bundle.FindProgram(o.Source.Ref, o.Dir, bundle.Lookup(r.HostEnv["PATH"])); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	base := commandName(o.Source.Ref, o.Args)
	pkg := registry.Package{Name: base, Version: "0.0.0", Description: "The command " + base, Variables: ownVariables(o)}
	m, err := packageManifest(pkg, bundle.TypeBinary, bundle.CommandPart{Command: o.Source.Ref, Args: o.Args, Dir: o.Dir}, nil)
	if err != nil {
		return nil, badRequest("command: %v", err)
	}
	c := &Candidate{Manifest: m}
	return c, c.describe(o)
}

// scripts matches the scripts that interpreters run.
var scripts = regexp.MustCompile(`(?i)\.(py|[mc]?[jt]s|rb|sh|php|jar)$`)

// generic matches names of scripts, and of their directories, that say nothing about the app.
var generic = regexp.MustCompile(`(?i)^(index|main|__main__|server|app|cli|run|start|build|dist|out|src|lib|bin|\.|\.\.|)$`)

// commandName returns the name of what a command line runs: the script or module of an interpreter, or else the program.
func commandName(command string, args []string) string {
	named := func(name string) bool {
		_, err := bundle.ServerName(name)
		return err == nil && !generic.MatchString(name)
	}
	for i, arg := range args {
		if i > 0 && args[i-1] == "-m" && named(arg) {
			return arg
		}
		if strings.HasPrefix(arg, "-") || !scripts.MatchString(arg) {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(arg, filepath.Ext(arg)), "/")
		for _, part := range slices.Backward(parts) {
			if named(part) {
				return part
			}
		}
	}
	return filepath.Base(command)
}

// FromUpload reads an .mcpb file that a client uploads. It returns core.CodePayloadTooLarge if the file is larger
// than 512 MiB.
func (r *Resolver) FromUpload(ctx context.Context, o Order, body io.Reader) (*Candidate, error) {
	o.Source.Kind = core.SourceUpload
	dir, err := r.scratch(o.Workspace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cleanup.RemoveAll(dir) }()
	path := filepath.Join(dir, "upload.mcpb")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(file, io.LimitReader(body, maxBundle+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("the upload is incomplete: %w", err)
	}
	if n > maxBundle {
		return nil, core.Errorf(core.CodePayloadTooLarge, "the bundle is larger than %d bytes", int64(maxBundle))
	}
	sum, _, err := bundle.FileSHA256(ctx, path)
	if err != nil {
		return nil, err
	}
	o.Source.Ref = sum
	return r.fromArchive(ctx, o, sum, func(string) (string, error) { return path, nil })
}

// scratch creates a temporary directory in IncomingDir. The caller must remove it.
func (r *Resolver) scratch(workspace string) (string, error) {
	incoming := LayoutOf(r.Home, workspace).IncomingDir()
	if err := os.MkdirAll(incoming, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(incoming, "work-*")
}
