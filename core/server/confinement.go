package server

import (
	"context"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// confinement determines how apps can be confined on this machine, and logs it.
func (s *Server) confinement(ctx context.Context) instance.Confinement {
	c := instance.Confinement{Probe: process.ProbeSandbox(ctx), Home: s.config().Home, Ports: s.ownPorts}
	c.Hide = append(s.secretFiles(), sandbox.PrivateSystemPaths()...)
	s.takeCgroup(ctx, &c)
	log := s.log.Named("sandbox")
	fields := []any{"level", c.Level(s.config().Sandbox).String(), "network", s.config().Sandbox.Network.Values(), "ownUser", c.Probe.OwnUID, "cgroup", c.Cgroups.Bounds().Names()}
	if c.NoCgroups != "" {
		fields = append(fields, "noCgroup", c.NoCgroups)
	}
	if c.Level(s.config().Sandbox) < s.config().Sandbox.Level {
		log.Warn("apps run in a weaker sandbox than configured", append(fields, "reason", c.Probe.Reason)...)
	} else {
		log.Info("app sandbox", fields...)
	}
	s.sandbox = control.Sandbox{
		Level: c.Probe.Level.String(), OwnUser: c.Probe.OwnUID, Reason: c.Probe.Reason, Chroot: c.Probe.Chroot, Cgroup: c.Cgroups.Bounds().Names(), NoCgroups: c.NoCgroups,
	}
	return c
}

// takeCgroup makes the kernel enforce apps' limits, if the server's cgroup is delegated to it.
func (s *Server) takeCgroup(ctx context.Context, c *instance.Confinement) {
	tree, err := cgroup.Take()
	if err == nil {
		s.closers.add("cgroup", func(context.Context) error { return tree.Close() })
		err = process.ProbeCgroup(ctx, tree)
	}
	if err != nil {
		c.NoCgroups = err.Error()
		return
	}
	c.Cgroups = tree
}
