// Package schema holds the JSON Schema of the configuration file.
//
// It owns the keys, types, defaults and descriptions of the settings (schema.json), those of the built-in
// adapters as parts of it, and the check of a layer against it with problems that people can read. It
// does not own what no schema can express (package config).
package schema
