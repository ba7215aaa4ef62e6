package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

const maxFile = 1 << 20 // bytes of a configuration file

// Options are the inputs to Load.
type Options struct {
	Path        string      // --config; "" means the home's file if it exists (homeFile)
	Home        string      // --home; "" means ROPEWALK_HOME, else ~/.ropewalk
	Flags       Flags       // what was given on the command line
	Environment Environment // usually HostEnvironment()

	// Adapters contains the built-in adapters. If it is set, a name that is neither one of them nor an installed plugin is
	// a problem, and so are settings that violate their schemas.
	Adapters []schema.Adapter
}

// Flags contains the overrides from the command line; nil means not given.
type Flags struct {
	Host *string
	Port *int
}

// Load reads the configuration, applies defaults and checks it. It does not change anything on disk. All
// problems are returned as one Problems error, in file order.
func Load(o Options) (*Config, error) {
	c, problems, err := loadAll(o)
	if err == nil && len(problems) > 0 {
		err = problems.Sorted()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Examine is Load, but it also returns the Config if there are problems, so that callers can check the valid
// parts. The error is set when no Config can be created.
func Examine(o Options) (*Config, Problems, error) {
	c, problems, err := loadAll(o)
	return c, problems.Sorted(), err
}

// loadAll is Load, but it also returns the Config if there are problems. The error is set when no Config can be
// created.
func loadAll(o Options) (*Config, Problems, error) {
	s, err := schema.New(o.Adapters)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	home, err := homeDir(o)
	if err != nil {
		return nil, nil, Problems{{Place: Place{Source: "flag --home"}, Message: err.Error()}}
	}
	file, content, err := readFile(o.Path, home)
	if err != nil {
		return nil, nil, Problems{{Place: Place{Source: file}, Message: err.Error()}}
	}
	return build(s, o, home, file, content)
}

// build creates the Config for a file's text and reports its problems. It does not read anything else.
func build(s *schema.Schema, o Options, home, file string, content []byte) (*Config, Problems, error) {
	merged := merge(s, o, file, content)
	d, err := decode(merged.Value)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	base := home
	if file != "" {
		base = filepath.Dir(file)
	}
	c := d.config(base, o.Environment)
	c.Home, c.File, c.Environment, c.places = home, file, o.Environment, merged.Places
	c.effective = effective(merged)
	c.deriveLimits()
	k := check{cfg: c, doc: d, schema: s, expanded: merged.Expanded, problems: merged.Problems}
	return c, k.run(), nil
}

// merge puts the environment and the flags on top of a file's text, and the defaults underneath.
func merge(s *schema.Schema, o Options, file string, content []byte) *layer.Layer {
	merged := layer.ReadYAML(file, content, o.Environment)
	s.Convert(merged)
	s.Validate(merged)
	for _, above := range []*layer.Layer{environmentLayer(o.Environment), flagLayer(o.Flags)} {
		s.Validate(above)
		merged = above.Over(merged)
	}
	s.Fill(merged.Value)
	return merged
}

// homeDir returns the server's home: the flag, or else the environment, or else ~/.ropewalk.
func homeDir(o Options) (string, error) {
	home := o.Home
	if home == "" {
		home = o.Environment[EnvHome]
	}
	if home == "" {
		user := o.Environment["HOME"]
		if user == "" {
			return "", fmt.Errorf("there is no home; set --home or %s, because HOME is not set either", EnvHome)
		}
		home = filepath.Join(user, ".ropewalk")
	}
	return filepath.Abs(home)
}

// The home and the configuration of the deb, the rpm and the Helm chart.
const (
	packagedHome = "/var/lib/ropewalk"
	packagedFile = "/etc/ropewalk/ropewalk.yaml"
)

// homeFile returns the configuration file for a home: <home>/ropewalk.yaml, unless only the packages' file exists for their
// home. Without --config, commands therefore use the same state as the packaged server.
func homeFile(home, packagedHome, packagedFile string) string {
	file := filepath.Join(home, "ropewalk.yaml")
	if home != packagedHome {
		return file
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return file
	}
	if _, err := os.Lstat(packagedFile); err != nil {
		return file
	}
	return packagedFile
}

// readFile finds and reads the configuration file. Without --config it may be missing.
func readFile(path, home string) (file string, content []byte, err error) {
	explicit := path != ""
	if !explicit {
		path = homeFile(home, packagedHome, packagedFile)
	}
	if path, err = filepath.Abs(path); err != nil {
		return path, nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return "", nil, nil
	}
	if errors.Is(err, syscall.ENOTDIR) && !explicit {
		return path, nil, fmt.Errorf("the home %s is not a directory; choose another with --home or %s", home, EnvHome)
	}
	if errors.Is(err, fs.ErrPermission) && !explicit {
		return path, nil, fmt.Errorf("%w; let this user (id %d) read it, or choose another home with --home or %s", cause(err), os.Geteuid(), EnvHome)
	}
	if err != nil {
		return path, nil, cause(err)
	}
	defer func() { _ = f.Close() }()
	content, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return path, nil, cause(err)
	}
	if len(content) > maxFile {
		return path, nil, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	return path, content, nil
}

// cause returns a path error without the path, which the problem's place already shows.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", p.Err)
	}
	return err
}

// Problem is one thing that is wrong with the configuration.
type Problem = layer.Problem

// Problems lists everything that is wrong with a configuration. Load returns it as its error.
type Problems = layer.Problems

// Place is where a value was set.
type Place = layer.Place

// Locate returns where the value at a path was set: the place of the path itself, or else of the nearest path
// containing it, or else the whole file.
func (c *Config) Locate(path string) Place {
	if p, ok := c.places.Locate(path); ok {
		return p
	}
	return Place{Source: c.File}
}

// Problem assigns a problem to the line of its path, so that the result of an adapter's own check of its settings looks like the
// server's. The path of the adapter setting f is adapter.At + "." + f.
func (c *Config) Problem(path, message string) Problem {
	return Problem{Place: c.Locate(path), Path: path, Message: message}
}
