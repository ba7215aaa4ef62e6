package server

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// checks are what /readyz tests: the database, and the plugins, which are the auth adapter, the session
// store and the registries.
func (s *Server) checks() []httpapi.Check {
	return []httpapi.Check{
		{Name: "store", Run: s.store.CheckWritable},
		{Name: "plugins", Run: func(context.Context) error { return pluginsRun(s.host.Status()) }},
	}
}

// pluginsRun returns an error that names a plugin that is being restarted.
func pluginsRun(all []pluginhost.Status) error {
	for _, p := range all {
		if p.State == pluginhost.Restarting {
			return fmt.Errorf("the %s plugin %s does not run: %w", p.Kind, p.Name, p.LastErr)
		}
	}
	return nil
}
