package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

// ReadSection reads a file that contains only the section of one adapter, in YAML or JSON, and returns the
// adapter's settings. As in a whole configuration, ${env:NAME} is replaced and the server's own keys are left
// out. It does not check the settings; that is up to the adapter.
func ReadSection(kind, path string, env Environment) (Settings, error) {
	if path == "" {
		return Settings{}, nil
	}
	file, content, err := readFile(path, "")
	if err != nil {
		return Settings{}, Problems{{Place: Place{Source: file}, Message: err.Error()}}
	}
	section := layer.ReadYAML(file, content, env)
	if len(section.Problems) > 0 {
		return Settings{}, section.Problems.Sorted()
	}
	return plugin(kind, "", section.Value, filepath.Dir(file)).Settings, nil
}

// LoadPlugins reads only the plugins section. The rest of the configuration may be invalid, because it may name a plugin
// that is about to be installed.
func LoadPlugins(o Options) (Plugins, error) {
	c, d, err := loadSection(o, "plugins", anyProblem)
	if err != nil {
		return Plugins{}, err
	}
	return d.PluginDefaults.plugins(c.base()), nil
}

// LoadAddress returns the address of a home's server on its own machine: http://host:port or https://host:port,
// from the http section only. It is "" if the server picks its port at startup (http.port is 0). The rest of
// the configuration may refer to variables that are set only in the server's environment.
func LoadAddress(o Options) (string, error) {
	_, d, err := loadSection(o, "http", anyProblem)
	if err != nil {
		return "", err
	}
	if d.HTTP.Port == 0 {
		return "", nil
	}
	host := strings.Trim(d.HTTP.Host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if d.HTTP.TLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(d.HTTP.Port)), nil
}

// LoadStorage reads the storage section. In the returned Config only Home, File, Environment and Storage are
// set. It is for commands that work on the state. They may run without the environment variables that other
// sections refer to, so an unset variable is no error there. Any other mistake is: a misspelled section could be the one that says where the
// state is.
func LoadStorage(o Options) (*Config, error) {
	c, d, err := loadSection(o, "storage", unsetVariable)
	if err != nil {
		return nil, err
	}
	k := check{cfg: c, doc: d}
	if k.checkStorageKeys(); len(k.problems) > 0 {
		return nil, k.problems.Sorted()
	}
	c.Storage = d.Storage.storage(c.base())
	return c, nil
}

// anyProblem ignores all problems in other sections.
func anyProblem(Problems, string) bool { return true }

// unsetVariable ignores a value of another section only if it refers to an environment variable that is not
// set.
func unsetVariable(all Problems, path string) bool {
	return slices.ContainsFunc(all, func(p Problem) bool { return p.Path == path && p.Variable != "" })
}

// loadSection reads one section. Problems in other sections are ignored if ignore returns true for them. In the
// returned Config only Home, File and Environment are set.
func loadSection(o Options, name string, ignore func(all Problems, path string) bool) (*Config, document, error) {
	s, err := schema.New(o.Adapters)
	if err != nil {
		return nil, document{}, fmt.Errorf("configuration: %w", err)
	}
	home, err := homeDir(o)
	if err != nil {
		return nil, document{}, Problems{{Place: Place{Source: "flag --home"}, Message: err.Error()}}
	}
	file, content, err := readFile(o.Path, home)
	if err != nil {
		return nil, document{}, Problems{{Place: Place{Source: file}, Message: err.Error()}}
	}
	merged := merge(s, o, file, content)
	ours := slices.DeleteFunc(slices.Clone(merged.Problems), func(p Problem) bool {
		return p.Path != "" && p.Path != name && !strings.HasPrefix(p.Path, name+".") && ignore(merged.Problems, p.Path)
	})
	if len(ours) > 0 {
		return nil, document{}, ours.Sorted()
	}
	section, _ := merged.Value[name].(map[string]any)
	d, err := decode(map[string]any{name: section})
	return &Config{Home: home, File: file, Environment: o.Environment, places: merged.Places}, d, err
}

// base returns the directory to which relative paths in the configuration refer.
func (c *Config) base() string {
	if c.File == "" {
		return c.Home
	}
	return filepath.Dir(c.File)
}
