package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/event"
)

// Several servers may share one PostgreSQL database. The apps manager reconciles apps, and events travel on
// the bus. This file keeps the other caches of a server up to date, such as users, members, views, linked
// accounts and the files of skills. Everything else is read from the database each time.

// cluster returns the cluster with which the apps manager reconciles apps; nil for a single server.
func (s *Server) cluster() apps.Cluster {
	if !s.store.Shared() {
		return nil
	}
	return s.store
}

// logins returns the store for pending browser logins, or nil if a single server keeps them in memory.
func (s *Server) logins() access.Logins {
	if !s.store.Shared() {
		return nil
	}
	return s.store
}

// joinEvents sends this server's events to the readers on all servers of the cluster, and receives theirs.
func (s *Server) joinEvents() {
	if !s.store.Shared() {
		return
	}
	s.bus.Join(relay{s.store, func(workspace, name string) bool {
		_, err := s.apps.App(workspace, name)
		return err == nil
	}})
}

// followCluster applies the changes that peer servers make, until the server closes.
func (s *Server) followCluster() {
	if !s.store.Shared() {
		return
	}
	s.skills.Share(s.store)
	ctx, stop := context.WithCancel(context.Background())
	changes, ended := s.store.Changes(ctx), make(chan struct{})
	go func() {
		defer close(ended)
		s.syncSkills(ctx, skill.KeptPrefix)
		for c := range changes {
			switch c.Kind {
			case core.ChangeMembers:
				s.access.MembersChanged(c.Name)
			case core.ChangeSetting:
				if strings.HasPrefix(c.Name, skill.KeptPrefix) {
					s.syncSkills(ctx, c.Name)
				}
			case core.ChangeToken:
				s.access.TokenRevoked(c.Name)
			case core.ChangeApproval:
				s.approvals.Wake(c.Name)
			case core.ChangePins:
				s.pins.Reload(c.Workspace, c.Name)
			case core.ChangeViews:
				s.syncViews(ctx)
			case core.ChangeAccount:
				s.accounts.Changed(c.Name)
				s.apps.RefreshPublished(c.Workspace, c.Name)
				if c.Name == "" {
					s.apps.DefaultAccountChanged(c.Workspace)
				}
			case core.ChangeAll:
				s.accounts.Changed("")
				s.apps.RefreshPublished("", "")
				s.access.MembersChanged("")
				s.pins.Reload("", "")
				s.syncViews(ctx)
				s.approvals.Wake("")
				s.syncSkills(ctx, skill.KeptPrefix)
			default: // the apps manager reconciles apps
			}
		}
	}()
	s.closers.add("changes from peer servers", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
}

// syncViews reloads the views after a peer server has changed them. It retries until it succeeds.
func (s *Server) syncViews(ctx context.Context) {
	s.retry(ctx, "could not read the views that a peer server changed; retrying", s.views.Reload)
}

// syncSkills copies the skills that peer servers have written. It retries until it succeeds.
func (s *Server) syncSkills(ctx context.Context, prefix string) {
	s.retry(ctx, "could not copy skills from peer servers; retrying", func(ctx context.Context) error { return s.skills.Sync(ctx, prefix) })
}

// retry calls do until it succeeds or ctx ends, and logs each failure.
func (s *Server) retry(ctx context.Context, failed string, do func(context.Context) error) {
	for {
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.log.Warn(failed, "error", err)
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
}

const (
	appliedWithin = time.Second // how long an event waits for its change to be applied here
	pollEvery     = 5 * time.Millisecond
	relayQueue    = 1024
)

// relay delivers the events of peer servers to the bus, in order. Each event waits until its change is also
// applied on this server, so that a client that receives bundle.installed finds the app in the list.
type relay struct {
	event.Relay
	listed func(workspace, app string) bool
}

// Receive implements event.Relay.
func (r relay) Receive(ctx context.Context, deliver func(core.Event)) {
	queue := make(chan core.Event, relayQueue)
	var delivering sync.WaitGroup
	delivering.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-queue:
				r.await(ctx, e)
				deliver(e)
			}
		}
	})
	r.Relay.Receive(ctx, func(e core.Event) {
		select {
		case queue <- e:
		default: // the queue is full: drop the event
		}
	})
	delivering.Wait()
}

// await waits until an installed app is listed, or an uninstalled one no longer is, for at most appliedWithin.
func (r relay) await(ctx context.Context, e core.Event) {
	if e.Name != core.EventBundleInstalled && e.Name != core.EventBundleUninstalled {
		return
	}
	var app struct {
		Name string `json:"name"`
	}
	raw, isJSON := e.Data.(json.RawMessage)
	if !isJSON || json.Unmarshal(raw, &app) != nil {
		return
	}
	limit, cancel := context.WithTimeout(ctx, appliedWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for r.listed(e.Workspace, app.Name) != (e.Name == core.EventBundleInstalled) {
		select {
		case <-tick.C:
		case <-limit.Done():
			return
		}
	}
}
