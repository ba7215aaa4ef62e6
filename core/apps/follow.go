package apps

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// What is recorded holds for every server of a deployment: an app that one of them installs, starts,
// stops, replaces or uninstalls is installed, started, stopped, replaced or uninstalled on all. A
// server that follows tells nobody: the event was told where the command was given. How an app fares
// (crashed, dead) is each server's own.

// followers are the apps that are being made as they are recorded.
type followers struct {
	mu   sync.Mutex
	busy map[key]*pursuit
}

// pursuit is one of them.
type pursuit struct {
	again bool // a change was told since the records were read
	told  bool // of this very app
	done  chan struct{}
}

// follow makes apps as they are recorded, at each change that is told, until the manager closes.
func (y *Manager) follow(ctx context.Context, changes <-chan core.Change) {
	for c := range changes {
		if recalls(c) {
			y.recall(ctx)
		}
		switch c.Kind {
		case core.ChangeApp:
			y.pursue(key{c.Workspace, c.Name}, true)
		case core.ChangeAll:
			y.pursueAll(ctx)
		default: // not of apps
		}
	}
}

// pursueAll looks at every app, after changes may have been missed.
func (y *Manager) pursueAll(ctx context.Context) {
	records, err := y.o.Records.Installations(ctx)
	for warned := false; err != nil; warned = true {
		if !warned {
			y.log.Warn("What is installed could not be read; it is read again until it can", "error", err)
		}
		if !wait(ctx, followPause) {
			return
		}
		records, err = y.o.Records.Installations(ctx)
	}
	keys := map[key]struct{}{}
	for _, r := range records {
		keys[key{r.Workspace, r.Name}] = struct{}{}
	}
	y.mu.RLock()
	for workspace, apps := range y.apps {
		for name := range apps {
			keys[key{workspace, name}] = struct{}{}
		}
	}
	y.mu.RUnlock()
	for k := range keys {
		y.pursue(k, false)
	}
}

// followPause is how long is waited before records that cannot be read are read again.
const followPause = time.Second

// pursue makes an app as it is recorded, behind the caller's back and one change after the other.
// told says that the change was of this very app. The channel is closed when that is done.
func (y *Manager) pursue(k key, told bool) (done <-chan struct{}) {
	f := &y.following
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.busy[k]; p != nil {
		p.again, p.told = true, p.told || told
		return p.done
	}
	p := &pursuit{again: true, told: told, done: make(chan struct{})}
	ctx, leave, err := y.enter(context.Background())
	if err != nil { // the server ends
		close(p.done)
		return p.done
	}
	f.busy[k] = p
	go func() {
		defer leave()
		defer close(p.done)
		for {
			f.mu.Lock()
			if !p.again {
				delete(f.busy, k)
				f.mu.Unlock()
				return
			}
			p.again, told, p.told = false, p.told, false
			f.mu.Unlock()
			y.catchUp(ctx, k, told)
		}
	}()
	return p.done
}

// abreast sees to it, before something is done to an app, that it is here when it is recorded, and not
// when it is not: a client that did something through another server need not wait for this one.
func (y *Manager) abreast(ctx context.Context, k key) error {
	if y.o.Cluster == nil {
		return nil
	}
	r, err := y.o.Records.Installation(ctx, k.workspace, k.name)
	gone := core.CodeOf(err) == core.CodeNotFound
	if err != nil && !gone {
		return err
	}
	y.mu.RLock()
	a := y.apps[k.workspace][k.name]
	y.mu.RUnlock()
	if gone && a == nil || !gone && a != nil && a.now.Load().record.ID == r.ID {
		return nil
	}
	select {
	case <-y.pursue(k, false):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// catchUp makes an app as it is recorded, again and again until that worked.
func (y *Manager) catchUp(ctx context.Context, k key, told bool) {
	for warned := false; ; warned = true {
		var err error
		if a, missing := y.find(k.workspace, k.name); missing != nil {
			err = y.adopt(ctx, k)
		} else {
			err = a.catchUp(ctx, told)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if !warned {
			y.log.Warn("What another server did with an app could not be done here; it is tried until it can",
				"workspace", k.workspace, "app", k.name, "error", err)
		}
		if !wait(ctx, followPause) {
			return
		}
	}
}

// adopt brings up an app that another server has installed, if that is so.
func (y *Manager) adopt(ctx context.Context, k key) error {
	free, err := y.claim(ctx, k)
	if err != nil {
		return err
	}
	defer free()
	r, err := y.o.Records.Installation(ctx, k.workspace, k.name)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	case err != nil:
		return err
	}
	r.Dir = y.rebased(r)
	a := y.newApp(r)
	a.turn <- struct{}{}
	defer a.give()
	y.show(a)
	a.log.Info("Another server has installed an app.")
	a.resume()
	return nil
}

// claim takes a name once no install in progress has it. When an app has it by then, that is the error.
func (y *Manager) claim(ctx context.Context, k key) (free func(), err error) {
	for {
		y.mu.RLock()
		over := y.taken[k]
		y.mu.RUnlock()
		if free, err = y.reserve(k); err == nil || over == nil {
			return free, err
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// catchUp makes an app that is here be as it is recorded.
func (a *app) catchUp(ctx context.Context, told bool) error {
	read := func() (r core.Installation, gone bool, err error) {
		r, err = a.manager.o.Records.Installation(ctx, a.key.workspace, a.key.name)
		if core.CodeOf(err) == core.CodeNotFound {
			return r, true, nil
		}
		r.Dir = a.manager.rebased(r)
		return r, false, err
	}
	r, gone, err := read()
	if err != nil {
		return err
	}
	if gone || !r.Running || !alike(r, a.now.Load().record) {
		a.giveUp()
	}
	if err := a.take(ctx); err != nil {
		if core.CodeOf(err) == core.CodeNotFound { // it was removed here meanwhile; is it back?
			a.manager.pursue(a.key, told)
			return nil
		}
		return err
	}
	defer a.give()
	if r, gone, err = read(); err != nil {
		return err
	}
	switch now := a.now.Load(); {
	case gone:
		a.leave(ctx)
	case !alike(r, now.record):
		a.replace(ctx, r)
	case !r.Running:
		a.become(same, func(v *view) { v.record.Running = false })
		return a.endFor(ctx)
	case now.state == core.StateStopped, now.state == core.StateDead && told:
		a.become(same, func(v *view) { v.record.Running = true })
		a.resume()
	}
	return nil
}

// leave removes an app that another server has uninstalled. The caller holds the turn.
func (a *app) leave(ctx context.Context) {
	a.log.Info("Another server has uninstalled an app.")
	if err := a.endFor(ctx); err != nil {
		a.log.Error("An app is uninstalled, but not all of its processes have ended", "error", err)
	}
	a.manager.clear(placesOf(a.manager.o.Home, a.key.workspace).bundles(a.key.name))
	a.manager.remove(a)
}

// replace makes an app another one, or the same with other values. The caller holds the turn.
func (a *app) replace(ctx context.Context, r core.Installation) {
	a.log.Info("Another server has replaced an app", "version", r.Version)
	if err := a.endFor(ctx); err != nil {
		a.log.Error("An app was ended to be replaced, but not all of its processes have ended", "error", err)
	}
	old := a.now.Load().record
	a.become(same, func(v *view) {
		v.record = r
		v.describe()
	})
	if a.manager.owns(old) && old.Dir != r.Dir {
		a.manager.clear(old.Dir)
	}
	a.resume()
}

// alike reports whether two records are of the same app, to be run in the same way. The manifest is
// part of the files.
func alike(a, b core.Installation) bool {
	return a.ID == b.ID && a.Source == b.Source && a.Dir == b.Dir && a.Files == b.Files &&
		maps.Equal(a.Env, b.Env) && sameRemote(a.Remote, b.Remote)
}
