package config

import "github.com/ropewalk/ropewalk/core/config/layer"

// Problem is one thing that is wrong with the configuration.
type Problem = layer.Problem

// Problems is all that is wrong with a configuration. Load returns it as its error.
type Problems = layer.Problems

// Place is where a value was set.
type Place = layer.Place

// Locate returns where the value at a path was set: the place of the path itself, else of the nearest
// path around it, else the file as a whole.
func (c *Config) Locate(path string) Place {
	if p, ok := c.places.Locate(path); ok {
		return p
	}
	return Place{Source: c.File}
}

// Problem puts a problem on the line of its path, so that an adapter's own check of its settings reads
// like the server's. The path of the adapter setting f is adapter.At + "." + f.
func (c *Config) Problem(path, message string) Problem {
	return Problem{Place: c.Locate(path), Path: path, Message: message}
}
