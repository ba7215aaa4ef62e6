package main

import (
	"io"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/logging"
)

// newLogger returns the server's logger as the configuration wants it, and its levels.
func newLogger(c config.Log, w io.Writer) (hclog.Logger, *logging.Levels) {
	levels := logging.NewLevels(hclog.LevelFromString(c.Level))
	return logging.New(logging.Options{Levels: levels, JSON: c.Format == "json"}, w), levels
}
