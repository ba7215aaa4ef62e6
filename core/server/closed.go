package server

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/core/apps/permit"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/core/statekey"
)

// secretFiles returns the server's files outside its home. Apps never see these files, even if the configuration gives them access to
// a directory that contains them. Plugins keep tokens and keys in files named in their settings.
func (s *Server) secretFiles() (all []string) {
	c := s.config()
	key := c.Storage.Keys.File
	if key == "" { // the first linked account may create the key
		key = statekey.DefaultFile(c.Home)
	}
	for _, file := range []string{c.File, key, c.Audit.File, c.HTTP.TLS.KeyFile} {
		if file != "" {
			all = append(all, file)
		}
	}
	for _, p := range pluginsOf(c) {
		var settings any
		if json.Unmarshal(p.Settings.JSON(), &settings) == nil { // settings were checked, so they are JSON
			all = append(all, filesIn(settings)...)
		}
	}
	return all
}

// filesIn returns the strings in a decoded JSON value that are absolute paths of files. It leaves out the system's
// files, such as certificates, because every program may read them.
func filesIn(value any) (files []string) {
	switch v := value.(type) {
	case string:
		isSystems := slices.ContainsFunc(sandbox.SystemPaths(), func(dir string) bool { return sandbox.PathWithin(filepath.Clean(v), dir) })
		if info, err := os.Stat(v); filepath.IsAbs(v) && !isSystems && err == nil && info.Mode().IsRegular() {
			files = append(files, v)
		}
	case []any:
		for _, element := range v {
			files = append(files, filesIn(element)...)
		}
	case map[string]any:
		for _, member := range v {
			files = append(files, filesIn(member)...)
		}
	}
	return files
}

// ungrantablePaths returns more of the server's paths outside its home. Nobody can grant an app access to them.
func (s *Server) ungrantablePaths() (all []string) {
	c := s.config()
	if c.HTTP.TLS.CertFile != "" {
		all = append(all, c.HTTP.TLS.CertFile)
	}
	for _, p := range pluginsOf(c) {
		if p.Path != "" {
			all = append(all, p.Path)
		}
	}
	return append(all, c.Skills.Directories...)
}

// pluginsOf returns all plugins in a configuration.
func pluginsOf(c *config.Config) []config.Plugin {
	all := append([]config.Plugin{c.SessionStore}, c.Registries...)
	for _, a := range c.Auth {
		all = append(all, a.Plugin)
	}
	return append(all, c.Audit.Sinks...)
}

// ownPorts returns the ports of the server, its database and its plugins. Nobody can grant an app access to them,
// and no app may listen on them.
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
