package apps

import (
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
)

// sandboxOf returns the sandbox settings of an app: those of its own section of the configuration, which
// names apps of the default workspace, else the common ones.
func (m *Manager) sandboxOf(key interact.AppKey) config.Sandbox {
	if key.Workspace == core.DefaultWorkspaceID {
		if own := m.setup.Load().declared[key.Name].Sandbox; own != nil {
			return *own
		}
	}
	return m.o.Sandbox
}

// describe returns an app as the API shows it.
func (m *Manager) describe(a *app) core.App {
	v := a.now.Load()
	shown := v.app()
	if v.record.Remote != nil {
		return shown
	}
	settings := m.sandboxOf(a.key)
	level := m.o.Confinement.Level(settings)
	shown.Sandbox = &core.AppSandbox{
		Level: level.String(), Network: slices.Clone(settings.Network.Values()), OwnUser: m.o.Confinement.OwnUser(settings),
	}
	if level < settings.Level {
		shown.Sandbox.Weaker = m.o.Confinement.Probe.Reason
	}
	return shown
}

// limitExceeded is the limit that an instance was ended for; "" for none, and for no instance.
func limitExceeded(in instance.Instance) string {
	if limited, ok := in.(interface{ LimitExceeded() string }); ok {
		return limited.LimitExceeded()
	}
	return ""
}
