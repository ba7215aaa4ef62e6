package bundle

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

var (
	// A version becomes a directory name, so it contains no separator and does not start with a dot.
	versionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_~-]{0,127}$`)
	nameForm    = regexp.MustCompile(`^[^\x00-\x20\x7f](?:[^\x00-\x1f\x7f]{0,212}[^\x00-\x20\x7f])?$`)
)

// checker collects the problems of one manifest.
type checker struct{ problems []Problem }

func (c *checker) add(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{field, fmt.Sprintf(format, args...)})
}

func (c *checker) required(field, value string) {
	if strings.TrimSpace(value) == "" {
		c.add(field, "is required")
	}
}

// check returns all problems of m. A description may be empty, but not missing.
func (m *Manifest) check(described bool) []Problem {
	c := &checker{}
	m.checkVersions(c)
	c.required("name", m.Name)
	if m.Name != "" && (!nameForm.MatchString(m.Name) || core.CheckText("name", m.Name) != nil) {
		c.add("name", "must be 1 to 214 characters without control characters or surrounding spaces")
	}
	if !described {
		c.required("description", "")
	}
	c.required("author.name", m.Author.Name)
	m.Server.check(c)
	m.Compatibility.check(c)
	for _, key := range slices.Sorted(maps.Keys(m.UserConfig)) {
		m.UserConfig[key].check(c, "user_config."+key)
	}
	return c.problems
}

func (m *Manifest) checkVersions(c *checker) {
	field, v := "manifest_version", m.ManifestVersion
	if v == "" && m.DXTVersion != "" {
		field, v = "dxt_version", m.DXTVersion
	}
	switch v {
	case "0.1", "0.2", "0.3", "0.4":
	case "":
		c.add(field, "is required")
	default:
		c.add(field, "is %q; it must be 0.1, 0.2, 0.3 or 0.4", v)
	}
	c.required("version", m.Version)
	if m.Version != "" && !versionForm.MatchString(m.Version) {
		c.add("version", "is %q; it must have only letters, digits and . + _ ~ -, such as 1.2.3", m.Version)
	}
}

func (s Server) check(c *checker) {
	switch s.Type {
	case TypeNode, TypePython, TypeBinary, TypeUV:
	case "":
		c.add("server.type", "is required")
	default:
		c.add("server.type", "is %q; it must be node, python, uv or binary", s.Type)
	}
	if s.MCPConfig == nil {
		c.required("server.entry_point", s.EntryPoint)
	}
	if s.EntryPoint != "" && !isWithin(s.EntryPoint) {
		c.add("server.entry_point", "is %q; it must be a path inside the bundle", s.EntryPoint)
	}
	if s.MCPConfig == nil {
		return
	}
	c.required("server.mcp_config.command", s.MCPConfig.Command)
	checkCommand(c, "server.mcp_config", CommandPart{s.MCPConfig.Command, s.MCPConfig.Args, s.MCPConfig.Dir, s.MCPConfig.Env})
	for _, name := range slices.Sorted(maps.Keys(s.MCPConfig.PlatformOverrides)) {
		field := "server.mcp_config.platform_overrides." + name
		if !isPlatform(name) {
			c.add(field, "is not a platform; it must be darwin, linux or win32")
		}
		checkCommand(c, field, s.MCPConfig.PlatformOverrides[name])
	}
}

// checkCommand enforces the two rules that keep an operator's values from choosing what runs: the command comes from
// the manifest alone, as does every variable that affects how a program loads code.
func checkCommand(c *checker, field string, p CommandPart) {
	if refersToUserConfig(p.Command) {
		c.add(field+".command", "must not come from user_config")
	}
	for _, s := range append([]string{p.Command, p.Dir}, p.Args...) {
		if strings.ContainsRune(s, 0) {
			c.add(field, "contains a NUL byte")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		switch value := p.Env[name]; {
		case !envName.MatchString(name):
			c.add(field+".env", "%q is not a valid name for an environment variable", name)
		case strings.ContainsRune(value, 0):
			c.add(field+".env."+name, "contains a NUL byte")
		case deniedEnv(name) && refersToUserConfig(value):
			c.add(field+".env."+name, "must not come from user_config: it changes how programs are loaded")
		}
	}
}

func (k Compatibility) check(c *checker) {
	for i, p := range k.Platforms {
		if !isPlatform(p) {
			c.add(fmt.Sprintf("compatibility.platforms[%d]", i), "is %q; it must be darwin, linux or win32", p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Runtimes)) {
		if !IsVersionRange(k.Runtimes[name]) {
			c.add("compatibility.runtimes."+name, "is %q; it must be a version range such as >=18.0.0", k.Runtimes[name])
		}
	}
}

func isPlatform(name string) bool { return name == "darwin" || name == "linux" || name == "win32" }

// isWithin reports whether p stays inside the bundle when joined to its directory.
func isWithin(p string) bool {
	if strings.ContainsAny(p, "\x00\\") || path.IsAbs(p) {
		return false
	}
	clean := path.Clean(p)
	return clean != ".." && !strings.HasPrefix(clean, "../")
}
