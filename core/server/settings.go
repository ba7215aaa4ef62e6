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
