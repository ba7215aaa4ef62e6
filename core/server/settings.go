package server

import "github.com/ropewalk/ropewalk/core/httpapi/adminapi"

// settings are the settings that were loaded last, for GET /v1/config.
func (s *Server) settings() []adminapi.Setting {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	var all []adminapi.Setting
	for _, v := range s.config.Effective() {
		all = append(all, adminapi.Setting{Path: v.Path, Value: v.Value, Source: v.Source})
	}
	return all
}

// pluginStates are the states of the plugins, for GET /v1/plugins: those of the commands of the operator, without
// what belongs to this machine.
func (s *Server) pluginStates() []adminapi.Plugin {
	var all []adminapi.Plugin
	for _, p := range s.Plugins() {
		all = append(all, adminapi.Plugin{
			Kind: p.Kind, Name: p.Name, Adapter: p.Adapter, Version: p.Version, State: p.State, Generation: p.Restarts + 1,
			Since: p.Since, Degraded: p.Degraded, Protocol: p.Protocol, Calls: p.Calls, Errors: p.Errors, LastError: p.LastErr,
		})
	}
	return all
}
