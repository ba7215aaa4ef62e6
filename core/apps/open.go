package apps

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// firstLook limits how long Open waits for apps whose files it has to examine to find out whether they can sleep.
const firstLook = time.Second

// Open loads the installed apps, removes the files of interrupted installs, and starts the apps, Options.StartsAtOnce
// at a time. It returns before they are running, so that a broken or slow app does not delay the server. Normally,
// though, the tools of apps that can sleep are listed by then, so the first client sees all of them. Apps that the
// configuration declares are installed or updated first. From then on, the Manager follows the changes that other
// servers of the cluster make.
func (m *Manager) Open(ctx context.Context) error {
	var changes <-chan core.Change
	if m.o.Cluster != nil {
		changes = m.o.Cluster.Changes(m.life) // before reading the records, so that no change is missed
	}
	records, err := m.load(ctx)
	if err != nil {
		return err
	}
	m.broker.LoadCapabilities(ctx)
	m.crowd.running.Go(func() { m.crowd.thin(m.life) })
	ctx, done, err := m.beginWork(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	var looking, starting sync.WaitGroup
	defer func() {
		looked := make(chan struct{})
		go func() {
			looking.Wait()
			close(looked)
			starting.Wait()
			done()
		}()
		select {
		case <-looked:
		case <-time.After(firstLook):
		}
	}()
	for _, r := range records {
		a := m.newApp(r)
		a.turn <- struct{}{} // commands wait until the supervisor is running
		m.addApp(a)
		d, declared := m.declaration(a.key)
		switch {
		case declared:
			looking.Go(func() { m.updateDeclared(ctx, a, d) })
		case r.Sum == "" && r.Dir != "": // looking at all of its files may take a while
			looking.Go(a.resumeAndRelease)
		default:
			a.resumeAndRelease()
		}
	}
	for name := range m.setup.Load().declared {
		k := interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: name}
		d, ok := m.declaration(k)
		if _, err := m.find(k.Workspace, k.Name); !ok || err == nil {
			continue
		}
		starting.Go(func() { m.installMissing(ctx, name, d) })
	}
	if changes != nil {
		starting.Go(func() { m.contributeAllFiles(ctx) })
		m.work.Go(func() { m.followChanges(m.life, changes) })
		m.work.Go(func() { m.o.Cluster.ServePeers(m.life, interact.PeerTopic, interact.MaxPeerRequests, m.answerPeer) })
	}
	return nil
}

// load returns the records of the installed apps, sets aside those that were uninstalled, and removes files that belong to
// neither.
func (m *Manager) load(ctx context.Context) (records []core.Installation, err error) {
	records, err = m.o.Records.Installations(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the installed apps: %w", err)
	}
	if err := m.identity.load(ctx, m.o.Home, m.o.Records); err != nil {
		return nil, err
	}
	for i := range records {
		records[i].Dir = m.files.CurrentDir(records[i])
		recorded, err := m.recordGrants(ctx, records[i])
		if err != nil {
			return nil, fmt.Errorf("record the permissions of app %s: %w", recorded.Name, err)
		}
		records[i] = recorded
	}
	uninstalled, err := m.o.Records.Uninstalled(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the uninstalled apps: %w", err)
	}
	for i := range uninstalled {
		uninstalled[i].Dir = m.files.CurrentDir(uninstalled[i])
	}
	m.files.RemoveUnused(slices.Concat(records, uninstalled))
	for _, r := range uninstalled {
		m.setAside(r, r.UndoUntil)
	}
	return records, nil
}

// resume starts a supervisor for an app that should be running. If the app may sleep and its lists are known, it is
// asleep at first. The caller must hold the turn.
func (a *app) resume() {
	if !a.now.Load().record.Running {
		return
	}
	a.transition(core.StateStarting, nil)
	a.startAsleep(a.manager.life)
	a.startSupervisor(nil)
}

// resumeAndRelease resumes the app and releases the turn.
func (a *app) resumeAndRelease() {
	defer a.releaseTurn()
	a.resume()
}

// contributeAllFiles stores the files of apps that were installed before the server joined a cluster.
func (m *Manager) contributeAllFiles(ctx context.Context) {
	for _, a := range m.allApps() {
		if err := m.contributeFiles(ctx, a); err != nil && ctx.Err() == nil {
			a.log.Warn("could not store an app's files for the other servers; it runs only on this server", "error", err)
		}
	}
}

func (m *Manager) contributeFiles(ctx context.Context, a *app) error {
	old := a.now.Load().record
	if old.Files != "" || old.Dir == "" || !files.Exists(old.Dir) || files.IsImmovable(old.Dir) {
		return nil
	}
	sum, err := m.files.Put(ctx, old)
	if err != nil {
		return err
	}
	if err := a.acquireTurn(ctx); err != nil {
		return err
	}
	defer a.releaseTurn()
	changed, err := m.o.Records.ChangeInstallation(ctx, a.key.Workspace, a.key.Name, func(in *core.Installation) error {
		if in.ID != old.ID || in.Files != "" || m.files.CurrentDir(*in) != old.Dir {
			return errors.New("the app was changed in the meantime")
		}
		if in.Files = sum; !m.files.Owns(old) {
			in.Dir = filepath.Join(source.LayoutOf(m.o.Home, in.Workspace).BundlesDir(in.Name), source.LabelOf(sum))
		}
		return nil
	})
	if err == nil {
		a.transition(sameState, func(v *view) { v.record.Files, v.record.Dir = changed.Files, m.files.CurrentDir(changed) })
	}
	return err
}
