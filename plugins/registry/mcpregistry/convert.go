package mcpregistry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

var (
	sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

	// pypiVersion matches text that can be an exact PEP 440 version: its characters rule out a range.
	pypiVersion = regexp.MustCompile(`^v?[0-9][0-9A-Za-z.+_!-]*$`)
)

// exact reports whether a version is neither a range nor a tag. For npm, 1 and 1.2 are ranges.
func exact(version string, kind registry.Kind) bool {
	if kind == registry.KindPyPI {
		return pypiVersion.MatchString(version)
	}
	_, err := semver.StrictNewVersion(version)
	return err == nil
}

// convert returns the first usable way to install an entry, in the order mcpb, npm, pypi, remote. If there is none, the
// error gives the reason for each.
func convert(l listing) (registry.Package, error) {
	base := registry.Package{
		Name: l.Server.Name, Version: l.Server.Version, Title: l.Server.Title, Description: l.description(), TrustScore: l.trust(),
	}
	var reasons []string
	for _, kind := range []registry.Kind{registry.KindMCPB, registry.KindNPM, registry.KindPyPI} {
		for _, p := range l.Server.Packages {
			if p.RegistryType != string(kind) {
				continue
			}
			if why := unusable(p, kind); why != "" {
				reasons = append(reasons, p.RegistryType+" "+why)
				continue
			}
			return install(base, p, kind), nil
		}
	}
	for _, r := range l.Server.Remotes {
		if r.Type == "streamable-http" || r.Type == "sse" {
			return connect(base, r), nil
		}
		reasons = append(reasons, fmt.Sprintf("a remote of type %q is not known", r.Type))
	}
	for _, p := range l.Server.Packages {
		if !slices.Contains([]string{"mcpb", "npm", "pypi"}, p.RegistryType) {
			reasons = append(reasons, p.RegistryType+" packages cannot be installed")
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"it has no package and no remote"}
	}
	return registry.Package{}, fmt.Errorf("%w: %s %s exists, but cannot be installed: %s",
		plugins.ErrNotFound, base.Name, base.Version, strings.Join(reasons, "; "))
}

// unusable returns why a package cannot be installed, or "" if it can.
func unusable(p pack, kind registry.Kind) string {
	switch {
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		return "uses " + p.Transport.Type + ", not stdio"
	case kind == registry.KindMCPB && !sha256Hex.MatchString(strings.ToLower(p.FileSHA256)):
		return "has no fileSha256"
	case kind == registry.KindMCPB:
		return ""
	case !exact(p.Version, kind):
		return fmt.Sprintf("has the version %q, which is not exact", p.Version)
	case !publicBase(p.RegistryBaseURL, kind):
		return "is in a separate package registry, " + p.RegistryBaseURL
	}
	return ""
}

func publicBase(base string, kind registry.Kind) bool {
	switch strings.TrimRight(base, "/") {
	case "":
		return true
	case "https://registry.npmjs.org":
		return kind == registry.KindNPM
	case "https://pypi.org":
		return kind == registry.KindPyPI
	}
	return false
}

func install(base registry.Package, p pack, kind registry.Kind) registry.Package {
	var v values
	base.Kind = kind
	if kind == registry.KindMCPB {
		base.Artifact, base.SHA256 = base.Name+"@"+base.Version, strings.ToLower(p.FileSHA256)
	} else {
		base.Identifier, base.IdentifierVersion = p.Identifier, p.Version
		base.RuntimeArgs = runtimeArguments(&v, p)
		base.Args = v.arguments(p.PackageArguments)
	}
	v.environment(p.EnvironmentVariables)
	base.Variables = v.list
	return base
}

// runtimeArguments returns the arguments of the runtime itself. Packages are installed once and run without npx and
// uvx, so arguments for those are left out.
func runtimeArguments(v *values, p pack) []string {
	if p.RuntimeHint == "npx" || p.RuntimeHint == "uvx" {
		return nil
	}
	return v.arguments(p.RuntimeArguments)
}

func connect(base registry.Package, r remote) registry.Package {
	var v values
	base.Kind = registry.KindRemote
	base.Remote = registry.Remote{Transport: r.Type, URL: r.URL}
	v.addAll(r.Variables)
	for _, h := range r.Headers {
		if base.Remote.Headers == nil {
			base.Remote.Headers = map[string]string{}
		}
		base.Remote.Headers[h.Name] = v.text(h.Name, h.input)
	}
	base.Variables = v.list
	return base
}
