package server

import (
	"context"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/process"
)

// confinement finds out how apps can be confined on this machine, and logs it.
func (s *Server) confinement(ctx context.Context) instance.Confinement {
	c := instance.Confinement{Probe: process.ProbeSandbox(ctx), Home: s.config.Home}
	if s.config.File != "" {
		c.Hide = append(c.Hide, s.config.File)
	}
	if file := s.config.Storage.Keys.File; file != "" {
		c.Hide = append(c.Hide, file)
	}
	log := s.log.Named("sandbox")
	fields := []any{"level", c.Level(s.config.Sandbox).String(), "network", s.config.Sandbox.Network.Values(), "ownUser", c.Probe.OwnUID}
	if c.Level(s.config.Sandbox) < s.config.Sandbox.Level {
		log.Warn("apps run in a weaker sandbox than configured", append(fields, "reason", c.Probe.Reason)...)
	} else {
		log.Info("sandbox of apps", fields...)
	}
	return c
}
