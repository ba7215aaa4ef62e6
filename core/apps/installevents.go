package apps

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/logs"
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
			wanted = source.Project(o.Source.Ref)
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

// publishInstallFailed publishes why the installation of an app has failed. Name may be "".
func (m *Manager) publishInstallFailed(o source.Order, name string, err error) {
	said := installError(err)
	reason := core.TextOf(said)
	if failed, ok := errors.AsType[*instance.Failure](err); ok && !errors.Is(err, context.Canceled) {
		reason = failed.Reason // without what the app wrote, which only administrators see
	}
	m.o.Events.Publish(core.Event{Name: core.EventBundleInstallFailed, Workspace: o.Workspace, Data: core.BundleInstallFailed{
		Name: name, Source: o.Source.Kind, Error: core.CodeOf(said), Message: m.publicReason(o, reason),
	}})
}

// maxReason is how many characters an event has of the reason of a failure.
const maxReason = 500

// publicReason is what every member of the workspace may read of the reason why an order failed: its first line,
// without the values of the order, what of its address may be secret, and the directories of the server.
func (m *Manager) publicReason(o source.Order, reason string) string {
	reason, _, _ = strings.Cut(reason, "\n")
	switch o.Source.Kind {
	case core.SourceURL:
		reason = strings.ReplaceAll(reason, o.Source.Ref, o.Source.PublicRef())
	case core.SourcePath, core.SourceCommand:
		reason = strings.ReplaceAll(reason, o.Source.Ref, filepath.Base(o.Source.Ref))
	default:
	}
	reason = withoutDirectories(reason, m.o.Home)
	reason = logs.NewRedactor(core.Installation{Env: o.Env, Remote: o.Remote}).Text(reason)
	if r := []rune(reason); len(r) > maxReason {
		reason = string(r[:maxReason-1]) + "…"
	}
	return reason
}

// withoutDirectories returns a text with the last element in place of each path below the home.
func withoutDirectories(text, home string) string {
	if home == "" {
		return text
	}
	paths := regexp.MustCompile(regexp.QuoteMeta(filepath.Clean(home)) + `(/[^\s"'` + "`" + `:;,()]*)?`)
	return paths.ReplaceAllStringFunc(text, filepath.Base)
}
