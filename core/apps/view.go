package apps

import (
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// view is the state of an app at one moment. It is immutable: each change creates a new view.
type view struct {
	record         core.Installation
	kind           string   // see core.App.Type
	ui             *core.UI // from the manifest, or else from the first tool with a view
	uiFromManifest bool
	state          core.State
	awaited        bool              // it is about to start without a command: it is new on this server, or is being replaced or restarted
	instance       instance.Instance // nil unless running and awake
	asleep         bool              // as far as clients can tell it runs, but has no process until it is needed
	instructions   string            // those of the instance that was put to sleep
	servesSkills   bool              // whether the instance that was put to sleep serves skills
	offer          core.Offer        // kept while crashed or about to start, so that tools do not disappear during a restart
	since          time.Time         // when it last became running
	restarts       int
	failure        *instance.Failure // why it crashed or is dead, or why the last start failed; otherwise nil
	replaced       chan struct{}     // closed when a new view has replaced this one
}

// newView returns the view of an app that is not running.
func newView(record core.Installation) *view {
	v := &view{record: record, state: core.StateStopped, awaited: true, replaced: make(chan struct{})}
	v.describe()
	return v
}

// startsSoon reports whether a stopped app is about to start, so that calls wait for it.
func (v *view) startsSoon() bool { return v.awaited && v.record.Running }

// shows reports whether clients see the lists of the app.
func (v *view) shows() bool {
	return v.state != core.StateDead && (v.state != core.StateStopped || v.startsSoon())
}

// isMissing reports whether clients see none of the app's lists although they would if the app worked.
func (v *view) isMissing() bool {
	o := &v.offer
	known := len(o.Tools)+len(o.Held)+len(o.Prompts)+len(o.Resources)+len(o.Templates) > 0
	return v.state != core.StateRunning && (v.state == core.StateDead || v.shows()) && !known
}

// describe reads the app's type and UI from the manifest.
func (v *view) describe() {
	v.kind, v.ui = bundle.AppPlain, nil
	if m, err := bundle.ParseManifest(v.record.Manifest); err == nil {
		v.kind, v.ui = m.Type(), m.UI()
	}
	v.uiFromManifest = v.ui != nil
}

// setOffer sets new lists. If the manifest has no UI, the UI is taken from the first tool with a view.
func (v *view) setOffer(lists core.Offer) {
	v.offer = lists
	if v.uiFromManifest {
		return
	}
	v.ui = nil
	for _, t := range lists.Tools {
		if t.ViewURI != "" {
			v.ui = &core.UI{Name: v.record.Name, PrimaryView: core.PrimaryView{ResourceURI: t.ViewURI}}
			return
		}
	}
}

// servedUI returns the UI with the URI under which its view is served.
func (v *view) servedUI() *core.UI {
	if v.ui == nil {
		return nil
	}
	ui := *v.ui
	ui.PrimaryView.ResourceURI = core.ViewURI(v.record.Name, ui.PrimaryView.ResourceURI)
	return &ui
}

// app returns the view in the form that the HTTP API shows.
func (v *view) app() core.App {
	app := core.App{
		Name: v.record.Name, BundleName: v.record.PublicName(), Version: v.record.Version,
		Status: v.state, Asleep: v.asleep, Type: v.kind, ToolCount: len(v.offer.Tools), TrustScore: v.record.TrustScore, UI: v.servedUI(), ToolFilter: v.record.Tools,
	}
	if r := v.record.Remote; r != nil && r.Auth.LinksAccounts() {
		app.Auth = r.Auth.Type
	}
	if v.failure != nil {
		app.LastError, app.LastOutput = v.failure.Reason, v.failure.Output
	}
	return app
}

func failureOf(err error) *instance.Failure {
	if f, ok := errors.AsType[*instance.Failure](err); ok {
		return f
	}
	return &instance.Failure{Reason: core.TextOf(err), Final: errors.Is(err, files.ErrChanged)}
}

// reasonLength limits the length of the reason in an error, in runes. core.App.LastError contains all of it.
const reasonLength = 300

// because returns ": " and the reason why the app is not running, shortened from core.App.LastError; "" if there was no
// failure. Everyone who may call the app's tools can see that field as well.
func (v *view) because() string {
	if v.failure == nil || v.failure.Reason == "" {
		return ""
	}
	reason := []rune(strings.Join(strings.Fields(v.failure.Reason), " "))
	if len(reason) > reasonLength {
		reason = append(reason[:reasonLength], '…')
	}
	return ": " + string(reason)
}

// health returns the health of the app. Uptime is in seconds; it is 0 if the app is not running.
func (v *view) health() core.AppHealth {
	h := core.AppHealth{Name: v.record.Name, State: v.state, RestartCount: v.restarts}
	if v.state == core.StateRunning {
		h.Uptime = float64(time.Since(v.since).Milliseconds()) / 1000
	}
	return h
}
