// Package layer holds the sources of the configuration, such as the file and the environment, as values
// with their places.
//
// It owns the reading of YAML, the replacement of ${env:NAME}, the merging of layers, and the Problem
// with its place. It does not own which settings there are (package schema) or what they mean (package
// config).
package layer
