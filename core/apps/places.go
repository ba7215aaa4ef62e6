package apps

import (
	"path/filepath"

	"github.com/ropewalk/ropewalk/core"
)

// places is where a workspace's apps keep their files: the service's home for the default
// workspace, <home>/workspaces/<id> for every other.
type places struct{ root string }

func placesOf(home, workspace string) places {
	if workspace == core.DefaultWorkspaceID {
		return places{home}
	}
	return places{filepath.Join(home, "workspaces", workspace)}
}

func (p places) apps() string               { return filepath.Join(p.root, "apps") }
func (p places) app(name string) string     { return filepath.Join(p.root, "apps", name) }
func (p places) bundles(name string) string { return filepath.Join(p.app(name), "bundle") }
func (p places) data(name string) string    { return filepath.Join(p.app(name), "data") }
func (p places) log(name string) string     { return filepath.Join(p.app(name), "logs", "stderr.log") }

// incoming holds what is being installed. No app is named so: names have no dot.
func (p places) incoming() string { return filepath.Join(p.apps(), ".incoming") }
