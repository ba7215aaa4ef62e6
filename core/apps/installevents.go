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

// progressOf returns a function that publishes the progress of an app's installation as events. It publishes nothing if
// name is "".
func (m *Manager) progressOf(workspace, name string) func(stage, message string) {
	return func(stage, message string) {
		if name == "" {
			return
		}
		m.o.Events.Publish(core.Event{Name: core.EventBundleProgress, Workspace: workspace, Data: core.BundleProgress{Name: name, Stage: stage, Message: message}})
	}
}

// reportProgress publishes the progress of an installation once the app's name is known, if o reports progress.
func (m *Manager) reportProgress(o source.Order, name, stage, message string) {
	if o.Progress != nil {
		m.progressOf(o.Workspace, name)(stage, message)
	}
}

// expectedName returns the server name that the app of an order will get, if the order determines it. It is "" if only
// the bundle can tell, for example for a path.
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

// publishInstallFailed publishes why an app's installation failed. name may be "".
func (m *Manager) publishInstallFailed(o source.Order, name string, err error) {
	shown := installError(err)
	reason := core.TextOf(shown)
	if failed, ok := errors.AsType[*instance.Failure](err); ok && !errors.Is(err, context.Canceled) {
		reason = failed.Reason // without the app's output, which only administrators may see
	}
	m.o.Events.Publish(core.Event{Name: core.EventBundleInstallFailed, Workspace: o.Workspace, Data: core.BundleInstallFailed{
		Name: name, Source: o.Source.Kind, Error: core.CodeOf(shown), Message: m.publicReason(o, reason),
	}})
}

// maxReason is the maximum length of the reason in an event, in characters.
const maxReason = 500

// publicReason returns the part of a failure's reason that every member of the workspace may read. This is its first
// line, without the order's values, the secret parts of its address, or the server's directories.
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

// withoutDirectories replaces each path under the home with its last element.
func withoutDirectories(text, home string) string {
	if home == "" {
		return text
	}
	paths := regexp.MustCompile(regexp.QuoteMeta(filepath.Clean(home)) + `(/[^\s"'` + "`" + `:;,()]*)?`)
	return paths.ReplaceAllStringFunc(text, filepath.Base)
}
