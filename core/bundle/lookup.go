package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// ErrNoProgram means that a program was found neither on the search path nor at the path given for it.
var ErrNoProgram = errors.New("program not found")

// standIns returns the names under which a runtime may be installed.
func standIns(name string) []string {
	switch name {
	case "python":
		return []string{"python", "python3"}
	case "python3":
		return []string{"python3", "python"}
	default:
		return []string{name}
	}
}

// Lookup returns a function that finds programs on searchPath, a list of directories as in PATH. It works like
// exec.LookPath, but does not read the environment and skips relative directories.
func Lookup(searchPath string) func(name string) (string, error) {
	dirs := filepath.SplitList(searchPath)
	return func(name string) (string, error) {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if !filepath.IsAbs(path) {
				continue
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				return path, nil
			}
		}
		return "", ErrNoProgram
	}
}

func lookup(name string, find func(string) (string, error)) (string, error) {
	if find == nil {
		return "", fmt.Errorf("%w: %q: no search path is configured", ErrNoProgram, name)
	}
	for _, candidate := range standIns(name) {
		if path, err := find(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %q is not on the server's search path: install it, or add its directory to PATH", ErrNoProgram, name)
}

// platformName converts a runtime.GOOS to the name used in manifests.
func platformName(goos string) string {
	if goos == "windows" {
		return "win32"
	}
	return goos
}

func (m *Manifest) supports(goos string) error {
	platform, listed := platformName(goos), m.Compatibility.Platforms
	if len(listed) == 0 {
		return nil
	}
	for _, p := range listed {
		if p == platform {
			return nil
		}
	}
	return fmt.Errorf("compatibility.platforms: %s %s supports only %s, but this server runs %s",
		m.Name, m.Version, strings.Join(listed, ", "), platform)
}

// Runtime returns the name of the runtime for this server type, and the version range that compatibility.runtimes
// requires of it. It returns "" and "" if there is no such requirement.
func (m *Manifest) Runtime() (name, versions string) {
	switch m.Server.Type {
	case TypeNode:
		name = "node"
	case TypePython:
		name = "python"
	case TypeUV, TypeBinary: // uv finds a Python of the right version; a binary needs none
	}
	if versions = m.Compatibility.Runtimes[name]; versions == "" {
		return "", ""
	}
	return name, versions
}

// CheckRuntime checks the version that a runtime reports, such as "v22.4.0" or "Python 3.12.1", against
// compatibility.runtimes. A version that cannot be parsed passes.
func (m *Manifest) CheckRuntime(reported string) error {
	name, versions := m.Runtime()
	words := strings.Fields(reported)
	if name == "" || len(words) == 0 {
		return nil
	}
	have, parseErr := semver.NewVersion(words[len(words)-1])
	want, err := semver.NewConstraint(versions)
	if parseErr != nil || err == nil && want.Check(have) {
		return nil //nolint:nilerr // a version that cannot be read passes
	}
	if err != nil {
		return fmt.Errorf("compatibility.runtimes.%s: %w", name, err)
	}
	return fmt.Errorf("%s %s needs %s %s, but this machine has %s: install one of these versions, or add its directory to the server's PATH", m.Name, m.Version, name, versions, have)
}

// IsVersionRange reports whether a text is a version range such as >=18.0.0.
func IsVersionRange(text string) bool {
	_, err := semver.NewConstraint(text)
	return text != "" && err == nil
}
