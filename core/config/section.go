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

// ReadSection reads a file that holds the section of one adapter and nothing else, in YAML or
// JSON, and returns the adapter's settings: ${env:NAME} is replaced and the server's own keys are
// left out, as in a whole configuration. What the settings must be is the adapter's to say.
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

// LoadPlugins reads the section plugins and nothing else. The rest of the configuration may be wrong: it may
// name a plugin that is about to be installed.
func LoadPlugins(o Options) (Plugins, error) {
	c, d, err := loadSection(o, "plugins", anyProblem)
	if err != nil {
		return Plugins{}, err
	}
	return d.PluginDefaults.plugins(c.base()), nil
}

// LoadAddress returns the address of the server of a home on its own machine: http://host:port or https://host:port, from the section
// http and nothing else; "" when a server chooses its port as it starts (http.port is 0). The rest of the configuration
// may name variables that only the server's environment has.
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

// LoadStorage reads the section storage: of the Config it returns, only Home, File, Environment and Storage are set.
// It is for commands about the state, which need not have the environment variables that other sections name. Any
// other mistake is refused: a misspelled section could be the one that says where the state is.
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

// anyProblem ignores what is wrong in other sections.
func anyProblem(Problems, string) bool { return true }

// unsetVariable ignores a value of another section only if it names an environment variable that is not set.
func unsetVariable(all Problems, path string) bool {
	return slices.ContainsFunc(all, func(p Problem) bool { return p.Path == path && p.Variable != "" })
}

// loadSection reads one section. Problems at the paths of other sections are ignored when ignore says so. Of the Config
// it returns, only Home, File and Environment are set.
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

// base is the directory that relative paths of the configuration begin at.
func (c *Config) base() string {
	if c.File == "" {
		return c.Home
	}
	return filepath.Dir(c.File)
}
