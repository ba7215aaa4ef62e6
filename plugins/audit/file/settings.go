package file

import (
	"path/filepath"

	"github.com/ropewalk/ropewalk/plugins"
)

// Settings are the settings of this sink.
type Settings struct {
	// File is the absolute path of the file. The default is audit.log in the plugin's directory.
	File string `json:"file"`
}

// Check implements plugins.Checker.
func (s *Settings) Check(problems *plugins.ConfigError) {
	if s.File != "" && !filepath.IsAbs(s.File) {
		problems.Add("file", "must be an absolute path; leave it out to use audit.log in the plugin's directory")
	}
}
