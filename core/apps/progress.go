package apps

import (
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// progressOf publishes the progress of the installation of an app as events. There are none while the
// app's name is not known.
func (m *Manager) progressOf(workspace, name string) func(stage, message string) {
	return func(stage, message string) {
		if name == "" {
			return
		}
		m.o.Events.Publish(core.Event{Name: core.EventBundleProgress, Workspace: workspace, Data: core.BundleProgress{Name: name, Stage: stage, Message: message}})
	}
}

// reportProgress publishes the progress of an installation whose app has its name, if o reports any.
func (m *Manager) reportProgress(o source.Order, name, stage, message string) {
	if o.Progress != nil {
		m.progressOf(o.Workspace, name)(stage, message)
	}
}

// expectedName returns the server name that the app of an order gets as far as the order tells. It is ""
// where only the bundle can tell: a path of the server is not a name.
func expectedName(o source.Order) string {
	wanted := o.ServerName
	if wanted == "" {
		switch o.Source.Kind {
		case core.SourceName, core.SourceNPM, core.SourcePyPI:
			wanted = o.Source.Ref
		default:
			return ""
		}
	}
	name, err := bundle.ServerName(wanted)
	if err != nil {
		return ""
	}
	return name
}
