// Package schema contains the JSON Schema of the configuration file.
//
// It defines the keys, types, defaults and descriptions of the settings (schema.json) and includes those of the
// built-in adapters. It checks a layer against the schema and reports readable problems. What a schema cannot
// express is checked in package config.
package schema
