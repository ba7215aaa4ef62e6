package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// pypiName is the form of PyPI project names, with optional extras in brackets (PEP 508).
var pypiName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9][A-Za-z0-9._-]*(?:, ?[A-Za-z0-9][A-Za-z0-9._-]*)*\])?$`)

// Project returns the name of a package without its extras.
func Project(ref string) string {
	name, _, _ := strings.Cut(ref, "[")
	return name
}

// fromPyPI describes one exact version of a PyPI project. It is installed into a virtual environment in the app's own
// directory, with uv if that is installed and otherwise with Python's venv and pip. Only wheels are used, so none of
// the project's code runs during the install.
func (r *Resolver) fromPyPI(o Order, pkg registry.Package) (*Candidate, error) {
	if !pypiName.MatchString(pkg.Identifier) {
		return nil, fmt.Errorf("the registry's entry for %s names the PyPI project %.200q, which is not a valid name", pkg.Name, pkg.Identifier)
	}
	command := "${__dirname}/venv/bin/" + Project(pkg.Identifier)
	return packageCandidate(o, pkg, bundle.TypeBinary, command, func(ctx context.Context, c *Candidate, dir string) error {
		venv := filepath.Join(dir, "venv")
		if err := r.fillVenv(ctx, c, dir, venv, pkg.Identifier+"=="+packageVersion(pkg)); err != nil {
			return err
		}
		script, err := consoleScript(venv, Project(pkg.Identifier), o.Source.Bin)
		if err != nil {
			return err
		}
		// RuntimeArgs are arguments for uvx or Python. They do not apply because the command runs directly.
		return c.writeManifest(pkg, bundle.TypeBinary, "${__dirname}/venv/bin/"+script, arguments(pkg, c.Record.Env, pkg.Args), nil)
	})
}

func (r *Resolver) fillVenv(ctx context.Context, c *Candidate, dir, venv, requirement string) error {
	fill := r.fillWithPip
	if r.hasUV() {
		fill = r.fillWithUV
	}
	if err := fill(ctx, c, dir, venv, requirement); err != nil {
		return err
	}
	project, _, _ := strings.Cut(requirement, "==")
	if older := olderVersions(venv, Project(project)); older != "" {
		return r.installInto(ctx, c, dir, venv, requirement, older)
	}
	return nil
}

// installInto installs requirements into a virtual environment.
func (r *Resolver) installInto(ctx context.Context, c *Candidate, dir, venv string, requirements ...string) error {
	python := filepath.Join(venv, "bin", "python")
	if !r.hasUV() {
		return r.runInstaller(ctx, c, dir, python, pipInstall(append([]string{"--"}, requirements...)...)...)
	}
	options := []string{"pip", "install", "--quiet", "--only-binary", ":all:", "--python", python, noCompile, "--"}
	return r.runInstaller(ctx, c, dir, "uv", append(options, requirements...)...)
}

// oldSDK matches code that needs version 1 of the Python SDK, the project mcp: version 2 renamed FastMCP and has no
// decorators for requests.
var oldSDK = regexp.MustCompile(`mcp\.server\.fastmcp|(?m:^\s*@\w+\.(?:list_tools|call_tool|list_resources|read_resource|list_prompts|get_prompt)\()`)

// olderVersions returns a requirement for an older version of something that a project uses without saying which versions
// it needs, or "".
func olderVersions(venv, project string) string {
	switch {
	case needsOldSDK(venv, project):
		return "mcp<2"
	case needsOldPydantic(venv):
		return "pydantic<2.14"
	}
	return ""
}

// needsOldPydantic reports whether the installed SDK uses a part of pydantic that version 2.14 no longer has. Many projects
// require exactly such a version of the SDK.
func needsOldPydantic(venv string) bool {
	const function = "eval_type_backport"
	site, err := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages"))
	if err != nil || len(site) != 1 {
		return false
	}
	contains := func(file string) (found, read bool) {
		raw, err := readInstalled(site[0], filepath.FromSlash(file))
		return strings.Contains(string(raw), function), err == nil
	}
	used, _ := contains("mcp/server/fastmcp/utilities/func_metadata.py")
	provided, readable := contains("pydantic/_internal/_typing_extra.py")
	return used && readable && !provided
}

// needsOldSDK reports whether a project was written for version 1 of the SDK and got a newer one because it does not
// state which version it needs.
func needsOldSDK(venv, project string) bool {
	newer, err := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages", "mcp-[2-9]*.dist-info"))
	records, err2 := metadataFiles(venv, project, "RECORD")
	if errors.Join(err, err2) != nil || len(newer) == 0 {
		return false
	}
	for _, record := range records {
		raw, err := readInstalled(venv, record)
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(raw)) {
			file, _, _ := strings.Cut(line, ",")
			if !strings.HasSuffix(file, ".py") {
				continue
			}
			source, err := readInstalled(venv, filepath.Join(filepath.Dir(filepath.Dir(record)), file))
			if err == nil && oldSDK.Match(source) {
				return true
			}
		}
	}
	return false
}

func (r *Resolver) fillWithPip(ctx context.Context, c *Candidate, dir, venv, requirement string) error {
	if err := r.install(ctx, c, program{dir: dir, trusted: true}, "python3", "-m", "venv", venv); err != nil {
		return err
	}
	return explainRefusal(explainPython(r.installInto(ctx, c, dir, venv, requirement)), c.Record.Name)
}

// explainPython adds to pip's error that python3 is not a version that the project supports.
func explainPython(err error) error {
	if needed := neededPython(err); needed != "" {
		return fmt.Errorf("the PyPI project needs Python %s, but python3 is a different version: install uv, which finds or fetches the version that a project needs: %w", needed, err)
	}
	return err
}

// pythonRange matches a range of Python versions, as in requires-python.
const pythonRange = `([<>=!~]+ ?[0-9.*]+(?:, ?[<>=!~]+ ?[0-9.*]+)*)`

// otherPython matches the messages of uv and pip when a project needs a Python version that the environment does not
// have.
var otherPython = regexp.MustCompile(`(?:does not satisfy|depends on|requires) Python ?` + pythonRange +
	`|requires a different Python: \S+ not in '` + pythonRange + `'|(?:.*)Requires-Python ` + pythonRange) // pip lists the newest version last

// neededPython returns the range of Python versions that a package manager's error names; "" for none.
func neededPython(err error) string {
	if err == nil {
		return ""
	}
	found := otherPython.FindStringSubmatch(strings.Join(strings.Fields(err.Error()), " "))
	return strings.ReplaceAll(strings.Join(found[min(1, len(found)):], ""), " ", "")
}

// fillWithUV creates and fills a virtual environment with uv. If the project needs a different Python, uv finds or
// fetches it.
func (r *Resolver) fillWithUV(ctx context.Context, c *Candidate, dir, venv, requirement string) error {
	install := func(options ...string) error {
		args := append([]string{"venv", "--quiet"}, options...)
		if err := r.install(ctx, c, program{dir: dir, trusted: true}, "uv", append(args, venv)...); err != nil {
			return err
		}
		return r.installInto(ctx, c, dir, venv, requirement)
	}
	err := install()
	if err == nil {
		return nil
	}
	needed := neededPython(err)
	if needed == "" {
		return err
	}
	if err := removeEntries(dir); err != nil {
		return err
	}
	if err := install("--python", needed); err != nil {
		return fmt.Errorf("the PyPI project needs Python %s, which uv neither found nor fetched: %w", needed, err)
	}
	return nil
}

// removeEntries removes everything in a directory.
func removeEntries(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// consoleScript returns a command of a project: the one named bin, or else the one with the project's name, or else
// the only one.
func consoleScript(venv, project, bin string) (string, error) {
	wanted := cmp.Or(bin, project)
	if _, err := os.Stat(filepath.Join(venv, "bin", wanted)); err == nil { // includes dependencies and python
		return wanted, nil
	}
	files, err := metadataFiles(venv, project, "entry_points.txt")
	if err != nil {
		return "", err
	}
	var scripts []string
	for _, file := range files {
		raw, err := readInstalled(venv, file)
		if err != nil {
			return "", err
		}
		scripts = append(scripts, consoleScripts(string(raw))...)
	}
	return chooseCommand(fmt.Sprintf("PyPI project %q", project), project, bin, scripts)
}

// metadataFiles returns the paths, relative to venv, of a file in a project's metadata.
func metadataFiles(venv, project, file string) (inside []string, err error) {
	prefix := strings.ToLower(separators.ReplaceAllString(project, "_")) + "_"
	files, err := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages", "*.dist-info", file))
	for _, path := range files {
		name := strings.ToLower(separators.ReplaceAllString(filepath.Base(filepath.Dir(path)), "_"))
		if at, failed := filepath.Rel(venv, path); strings.HasPrefix(name, prefix) && failed == nil {
			inside = append(inside, at)
		}
	}
	return inside, err
}

// chooseCommand returns one of a package's commands: bin if that is set, or else the one with the package's name
// (ignoring case and separators), or else the only one.
func chooseCommand(what, name, bin string, commands []string) (string, error) {
	same := func(command string) bool {
		return strings.EqualFold(separators.ReplaceAllString(command, "-"), separators.ReplaceAllString(name, "-"))
	}
	switch at := slices.IndexFunc(commands, same); {
	case len(commands) == 0:
		return "", fmt.Errorf("the %s has no command, so it is not a server", what)
	case bin != "" && !slices.Contains(commands, bin):
		return "", fmt.Errorf("the %s has no command %q; it has %s", what, bin, strings.Join(commands, ", "))
	case bin != "":
		return bin, nil
	case at >= 0:
		return commands[at], nil
	case len(commands) == 1:
		return commands[0], nil
	}
	return "", fmt.Errorf("the %s has several commands (%s), and none is named after it: choose one with bin (--bin)", what, strings.Join(commands, ", "))
}

// separators matches the interchangeable separators in project names.
var separators = regexp.MustCompile(`[-_.]+`)

// consoleScripts returns the names in the console_scripts section of an entry_points.txt file.
func consoleScripts(text string) (names []string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); ok && section == "[console_scripts]" && filepath.Base(name) == name && name != "" {
			names = append(names, name)
		}
	}
	return names
}
