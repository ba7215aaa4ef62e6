// Package layer represents the sources of the configuration, such as the file and the environment, as values
// with their places.
//
// It reads YAML, replaces ${env:NAME}, merges layers, and defines Problem with its place. It does not know
// which settings exist (package schema) or what they mean (package config).
package layer
