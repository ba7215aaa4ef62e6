package server

import (
	"net"
	"strconv"

	"github.com/ropewalk/ropewalk/core/apps/permit"
	"github.com/ropewalk/ropewalk/core/config"
)

// closedPaths returns files of the server outside its home. Nobody can grant an app access to them.
func (s *Server) closedPaths() (all []string) {
	c := s.config()
	for _, file := range []string{c.Audit.File, c.HTTP.TLS.CertFile, c.HTTP.TLS.KeyFile} {
		if file != "" {
			all = append(all, file)
		}
	}
	for _, p := range pluginsOf(c) {
		if p.Path != "" {
			all = append(all, p.Path)
		}
	}
	return append(all, c.Skills.Directories...)
}

// pluginsOf returns all plugins that a configuration names.
func pluginsOf(c *config.Config) []config.Plugin {
	all := append([]config.Plugin{c.SessionStore}, c.Registries...)
	for _, a := range c.Auth {
		all = append(all, a.Plugin)
	}
	return append(all, c.Audit.Sinks...)
}

// ownPorts returns the ports of the server, its database and its plugins. Nobody can grant an app access to them.
func (s *Server) ownPorts() []int {
	c := s.config()
	ports := append([]int{s.addr().Port}, permit.LoopbackPorts(c.Storage.URL.Reveal())...)
	if _, text, err := net.SplitHostPort(c.HTTP.Metrics); err == nil {
		if port, err := strconv.Atoi(text); err == nil {
			ports = append(ports, port)
		}
	}
	for _, p := range pluginsOf(c) {
		ports = append(ports, permit.LoopbackPorts(string(p.Settings.JSON()))...)
	}
	return ports
}
