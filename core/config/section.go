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
	d, base, err := loadSection(o, "plugins")
	if err != nil {
		return Plugins{}, err
	}
	return d.PluginDefaults.plugins(base), nil
}

// LoadAddress returns the address of the server of a home on its own machine: http://host:port, from the section
// http and nothing else; "" when a server chooses its port as it starts (http.port is 0). The rest of the configuration may name variables that only the server's environment has.
func LoadAddress(o Options) (string, error) {
	d, _, err := loadSection(o, "http")
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
	return "http://" + net.JoinHostPort(host, strconv.Itoa(d.HTTP.Port)), nil
}

// loadSection reads one section, with the directory that its paths begin at.
func loadSection(o Options, name string) (d document, base string, err error) {
	s, err := schema.New(o.Adapters)
	if err != nil {
		return document{}, "", fmt.Errorf("configuration: %w", err)
	}
	home, err := homeDir(o)
	if err != nil {
		return document{}, "", Problems{{Place: Place{Source: "flag --home"}, Message: err.Error()}}
	}
	file, content, err := readFile(o.Path, home)
	if err != nil {
		return document{}, "", Problems{{Place: Place{Source: file}, Message: err.Error()}}
	}
	merged := merge(s, o, file, content)
	ours := slices.DeleteFunc(merged.Problems, func(p Problem) bool {
		return p.Path != "" && p.Path != name && !strings.HasPrefix(p.Path, name+".")
	})
	if len(ours) > 0 {
		return document{}, "", ours.Sorted()
	}
	base = home
	if file != "" {
		base = filepath.Dir(file)
	}
	section, _ := merged.Value[name].(map[string]any)
	d, err = decode(map[string]any{name: section})
	return d, base, err
}
