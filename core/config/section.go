package config

import (
	"path/filepath"

	"github.com/ropewalk/ropewalk/core/config/layer"
)

// ReadSection reads a file that holds the section of one adapter and nothing else, in YAML or
// JSON, and returns the adapter's settings: ${env:NAME} is replaced and the server's own keys are
// left out, as in a whole configuration. What the settings must be is the adapter's to say.
func ReadSection(kind, path string, env Environment) (Settings, error) {
	if path == "" {
		return Settings{}, nil
	}
	file, content, err := readFile(path, "")
	if err != nil {
		return Settings{}, Problems{{Place: Place{Source: file}, Message: err.Error()}}
	}
	section := layer.ReadYAML(file, content, env)
	if len(section.Problems) > 0 {
		return Settings{}, section.Problems.Sorted()
	}
	return plugin(kind, "", section.Value, filepath.Dir(file)).Settings, nil
}
