package config

import "encoding/json"

// Options is what Load starts from.
type Options struct {
	Path        string      // --config; "" means <home>/ropewalk.yaml if it exists
	Home        string      // --home; "" means ROPEWALK_HOME, else ~/.ropewalk
	Flags       Flags       // what was given on the command line
	Environment Environment // usually HostEnvironment()

	// Settings returns the JSON Schema of an adapter's own settings, nil when it is not known
	// (then the adapter alone checks them). Kind is auth, sessionstore or registry. May be nil.
	Settings func(kind, adapter string) json.RawMessage
}

// Flags are the command line's overrides; nil means not given.
type Flags struct {
	Host *string
	Port *int
}

// Load reads, defaults and checks the configuration. Its error is Problems: everything that is
// wrong, at once.
func Load(o Options) (*Config, error) {
	return nil, Problems{{Message: "unfinished"}}
}

// Schema returns the JSON Schema (2020-12) of the configuration file, with descriptions, defaults
// and enums, for editors.
func Schema() json.RawMessage { return nil }

// Diff names the sections in which two configurations differ, in the order of the Config struct.
func Diff(before, after *Config) []string { return nil }
