package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// startFunc starts an instance and completes the MCP handshake. Its errors are safe to show to users, and wrap
// link.ErrRefused if the app refused the handshake.
type startFunc func(ctx context.Context, spec instance.Spec) (instance.Instance, error)

// spec returns the specification of the app's instances.
func (a *app) spec() instance.Spec {
	record := a.now.Load().record
	layout := a.layout()
	var declared map[string]core.Secret
	if d, ok := a.manager.declaration(a.key); ok {
		declared = d.Env
	}
	grants, fromUserConfig := a.manager.grants(record)
	return instance.Spec{
		StartTimeout: a.startTimeout(record), Declared: declared, Grants: grants, UserConfigGrants: fromUserConfig, OnDenied: a.noteDenied, Trace: a.traced.Load(),
		Record: record, DataDir: layout.DataDir(record.Name), LogPath: layout.LogFile(record.Name), Logger: a.log,
		Sandbox: a.manager.sandboxOf(a.key), Layer: filepath.Join(layout.LayersDir(record.Name), record.ID),
	}
}

// startTimeout returns how long the app may take from its launch to its first list of tools. The app's own section of
// the configuration takes precedence over its record.
func (a *app) startTimeout(record core.Installation) time.Duration {
	configured := time.Duration(0)
	if a.key.Workspace == core.DefaultWorkspaceID {
		configured = a.manager.setup.Load().declared[a.key.Name].StartTimeout
	}
	return cmp.Or(configured, record.Patience, a.manager.o.StartTimeout)
}

// sandboxOf returns the sandbox settings of an app: those in its own section of the configuration, which exists only
// for the default workspace, or else the common ones.
func (m *Manager) sandboxOf(key interact.AppRef) config.Sandbox {
	if key.Workspace == core.DefaultWorkspaceID {
		if own := m.setup.Load().declared[key.Name].Sandbox; own != nil {
			return *own
		}
	}
	return m.o.Sandbox
}

// layout returns the locations of the app's files.
func (a *app) layout() source.Layout {
	return source.LayoutOf(a.manager.o.Home, a.key.Workspace)
}

// startShared starts the instance that all clients share.
//
// There are two kinds of handshake. With a remote app, it tries discovery first (link.StatelessVersion) and then the
// handshake of the older revisions. With a process, it is the other way around. The second kind is tried if the app
// refuses the first. If an app supports only link.StatelessVersion, that is remembered.
func (a *app) startShared(ctx context.Context, spec instance.Spec) (instance.Instance, error) {
	spec.ClientCapabilities = json.RawMessage(interact.AllCapabilities)
	spec.OnRequest, spec.OnNotification = a.dialog.AnswerShared, a.publishNotification
	if remote := spec.Record.Remote; remote != nil && remote.Auth.UsesAccounts() {
		if err := a.addPublished(ctx, &spec); err != nil {
			return nil, err
		}
	}
	return a.startEither(ctx, spec)
}

// startEither starts an instance with the right kind of handshake, as startShared describes.
func (a *app) startEither(ctx context.Context, spec instance.Spec) (instance.Instance, error) {
	only, server := a.dialog.OnlyStateless(), spec.Record.Remote
	spec.Stateless = only || server != nil && server.Type == "streamable-http"
	in, err := a.manager.start(ctx, spec)
	if err == nil || only || !errors.Is(err, link.ErrRefused) {
		return in, err
	}
	spec.Stateless = !spec.Stateless
	other, otherErr := a.manager.start(ctx, spec)
	if otherErr != nil {
		return nil, err // the first error is more useful
	}
	if spec.Stateless {
		a.dialog.LearnOnlyStateless()
	}
	return other, nil
}

// launchFound launches an app that was just found. If no transport was specified and a remote app rejects Streamable
// HTTP the way servers with the older transport do, it is tried with HTTP+SSE (MCP 2025-11-25, Transports, Backwards
// Compatibility). The record keeps the transport that worked.
func (a *app) launchFound(ctx context.Context, found *source.Candidate) (instance.Instance, core.Offer, error) {
	in, lists, err := a.launch(ctx)
	refused, ok := errors.AsType[*instance.Failure](err)
	if ok && found.Discover && a.takesAccounts(ctx, found, refused) {
		return a.launch(ctx)
	}
	if !ok || !found.TrySSE || !slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, refused.Status) {
		return in, lists, err
	}
	older := *found.Record.Remote
	older.Type = "sse"
	use := func(r *core.Remote) { a.transition(sameState, func(v *view) { v.record.Remote = r }) }
	use(&older)
	in, lists, olderErr := a.launch(ctx)
	if olderErr != nil {
		use(found.Record.Remote)
		return nil, core.Offer{}, err // the first error is more useful
	}
	found.Record.Remote = &older
	return in, lists, nil
}

// launch starts the app and reads its lists. Once its files are on this server, startTimeout applies. If there is an
// error, the instance is shut down.
func (a *app) launch(ctx context.Context) (_ instance.Instance, _ core.Offer, err error) {
	began := time.Now()
	defer func() {
		if ctx.Err() == nil {
			a.manager.o.Metrics.AppStart(a.key.Name, time.Since(began), err)
			if err != nil {
				a.noteFailure()
			}
		}
	}()
	if err := a.manager.files.Provide(ctx, a.now.Load().record); err != nil {
		return nil, core.Offer{}, err
	}
	if err := a.sealFiles(ctx); err != nil {
		return nil, core.Offer{}, err
	}
	files := ""
	if a.maySleep() {
		files = a.filesSum()
	}
	spec := a.spec()
	limit, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	in, err := a.startShared(limit, spec)
	if err != nil {
		return nil, core.Offer{}, err
	}
	listed := newRecorder(in, files)
	lists, err := a.reader(in).ReadAll(limit, listed)
	if err == nil {
		lists, err = a.checkPins(limit, in, lists)
	}
	if err == nil {
		a.recorded.Store(listed)
		return in, lists, nil
	}
	failure := &instance.Failure{Reason: fmt.Sprintf("its lists could not be read: %v", err)}
	if refused, ok := errors.AsType[*remote.Error](err); ok && refused.Status == http.StatusUnauthorized { // the app lets everybody initialize
		failure.Status, failure.Challenge = refused.Status, refused.Challenge
	}
	switch {
	case isClosed(in.Done()):
		failure = in.Failure()
	case limit.Err() != nil && ctx.Err() == nil:
		failure.Reason = fmt.Sprintf("tools/list was not answered within %s", spec.StartedTooLong())
	}
	if err := in.Shutdown(0); err != nil {
		a.log.Error("could not stop an app that failed to start", "error", err)
	}
	if ctx.Err() != nil {
		return nil, core.Offer{}, ctx.Err()
	}
	failure.Reason = logs.NewRedactor(a.now.Load().record).Text(failure.Reason)
	return nil, core.Offer{}, failure
}

// verifying wraps start so that it checks the files first. A process is started only from the files that were
// installed.
func (m *Manager) verifying(start startFunc) startFunc {
	return func(ctx context.Context, spec instance.Spec) (instance.Instance, error) {
		unconfined := m.o.Confinement.Level(spec.Sandbox) == sandbox.LevelNone
		if err := m.files.Verify(ctx, spec.Record, unconfined); err != nil {
			return nil, err
		}
		return start(ctx, spec)
	}
}

// sealFiles records the hash of an app's files if the app was installed by a server version that did not check them.
func (a *app) sealFiles(ctx context.Context) error {
	record := a.now.Load().record
	if record.Sum != "" {
		return nil
	}
	sum, err := a.manager.files.Seal(ctx, record)
	if err != nil || sum == "" {
		return err
	}
	recorded, err := a.manager.o.Records.ChangeInstallation(ctx, record.Workspace, record.Name, func(in *core.Installation) error {
		if in.ID == record.ID && in.Dir == record.Dir && in.Sum == "" {
			in.Sum = sum
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the hash of its files cannot be recorded: %w", err)
	}
	a.transition(sameState, func(v *view) { v.record.Sum = recorded.Sum })
	a.log.Info("from now on, an app's files are checked at each start", "workspace", record.Workspace, "app", record.Name)
	return nil
}

// reader returns a reader for the lists of an instance.
func (a *app) reader(in instance.Instance) offer.Reader {
	r := offer.Reader{
		Server: a.key.Name, Logger: a.log, Tools: a.now.Load().record.Tools,
		Headers: a.now.Load().record.Remote != nil && in.Info().Stateless,
	}
	if p, ok := in.(interface{ Report(sentence string) }); ok {
		r.Report = p.Report
	}
	return r
}

// rereadLists reads changed lists of a running app again and shows them if they differ.
func (a *app) rereadLists(ctx context.Context, in instance.Instance, changed []core.Kind) {
	limit, cancel := context.WithTimeout(ctx, a.manager.o.StartTimeout)
	defer cancel()
	lists, listed := a.pins.allListed(), a.recorded.Load().again(in)
	for _, kind := range changed {
		if err := a.reader(in).ReadList(limit, listed, kind, &lists); err != nil {
			a.log.Warn("could not read an app's changed list; keeping the old one", "list", kind, "error", err)
		}
	}
	if err := offer.CheckSize(&lists); err != nil {
		a.log.Warn("an app's changed lists are too large; keeping the old ones", "error", err)
		return
	}
	a.pins.mu.Lock()
	defer a.pins.mu.Unlock()
	lists, err := a.checkPinsLocked(limit, in, lists)
	if err != nil {
		a.log.Warn("could not check an app's changed lists; keeping the old ones", "error", err)
		return
	}
	if len(offer.Differences(&lists, &a.now.Load().offer)) > 0 {
		a.transition(sameState, func(v *view) { v.setOffer(lists) })
	}
	a.recorded.Store(listed)
	a.keepLists(in)
}
