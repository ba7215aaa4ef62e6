package apps

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/trust"
)

// pinning holds what is needed to check an app's tools again after a decision about its pins.
type pinning struct {
	mu           sync.Mutex // held from checking a list until the list is shown
	key          core.PinKey
	listed       *core.Offer // everything that the app last listed
	instructions string      // of the app
	dynamic      bool        // the app announces changes to its list
	revision     uint64      // the revision of the pins when the list was checked
}

// allListed returns what the app last listed, including tools that are held back.
func (p *pinning) allListed() core.Offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed == nil {
		return core.Offer{}
	}
	return *p.listed
}

// checkPins holds back the tools that may not be used. It is called once for each listing.
func (a *app) checkPins(ctx context.Context, in instance.Instance, lists core.Offer) (core.Offer, error) {
	a.pins.mu.Lock()
	defer a.pins.mu.Unlock()
	return a.checkPinsLocked(ctx, in, lists)
}

func (a *app) checkPinsLocked(ctx context.Context, in instance.Instance, lists core.Offer) (core.Offer, error) {
	if err := a.acceptSize(&lists); err != nil {
		return core.Offer{}, err
	}
	p := &a.pins
	p.key, p.listed, p.dynamic, p.instructions = a.pinKey(in), &lists, announcesTools(in), in.Info().Instructions
	return a.pinned(ctx)
}

// pinKey returns the key under which the tools of an instance are pinned.
func (a *app) pinKey(in instance.Instance) core.PinKey { return a.pinKeyOf(in.Info().Version) }

// pinKeyOf returns the key under which the tools of an app are pinned. reported is the version that a remote app
// reported in its handshake.
func (a *app) pinKeyOf(reported string) core.PinKey {
	record := a.now.Load().record
	key := core.PinKey{Workspace: record.Workspace, App: record.Name, Bundle: record.BundleName, Version: record.Version}
	if record.Remote != nil {
		key.Version = reported
	}
	return key
}

// pinned returns the app's lists, with the tools that may not be used held back. The caller must hold pins.mu.
func (a *app) pinned(ctx context.Context) (core.Offer, error) {
	p := &a.pins
	if a.manager.o.Pins == nil {
		return *p.listed, nil
	}
	p.revision = a.manager.o.Pins.Revision()
	return a.manager.o.Pins.CheckOffer(ctx, trust.Listing{Key: p.key, Dynamic: p.dynamic}, *p.listed, p.instructions)
}

// forgetPins ends what is held in memory for the pins of an app that is gone, or of one of its accounts.
func (m *Manager) forgetPins(k interact.AppRef, account string) {
	if m.o.Pins != nil {
		m.o.Pins.Forget(k.Workspace, k.Name, account)
	}
}

// announcesTools reports whether an app announces changes to its list of tools.
func announcesTools(in instance.Instance) bool {
	var capabilities struct {
		Tools struct {
			ListChanged bool `json:"listChanged"`
		} `json:"tools"`
	}
	raw := in.Info().Capabilities
	return len(raw) > 0 && json.Unmarshal(raw, &capabilities) == nil && capabilities.Tools.ListChanged
}

// checkPinsIfDecided checks the app's tools again if there was a decision between checking and showing them.
func (a *app) checkPinsIfDecided() {
	if a.manager.o.Pins == nil {
		return
	}
	a.pins.mu.Lock()
	outdated := a.pins.revision != a.manager.o.Pins.Revision()
	a.pins.mu.Unlock()
	if outdated {
		a.checkPinsAgain(a.manager.life)
	}
}

// checkPinsAgain checks the app's tools again and shows those that may be used now.
func (a *app) checkPinsAgain(ctx context.Context) {
	a.rereadSessionTools()
	if err := a.loadListings(ctx, ""); err != nil {
		a.log.Warn("could not check the lists that an app sent to accounts after a decision on its pins", "error", err)
	}
	a.pins.mu.Lock()
	defer a.pins.mu.Unlock()
	if a.pins.listed == nil {
		return
	}
	lists, err := a.pinned(ctx)
	if err != nil {
		a.log.Warn("could not check an app's tools after a decision on its pins", "error", err)
		return
	}
	if len(offer.Differences(&lists, &a.now.Load().offer)) == 0 {
		return
	}
	a.transition(sameState, func(v *view) {
		if v.state == core.StateRunning || v.state == core.StateCrashed {
			v.setOffer(lists)
		}
	})
}

// checkPinsAgain checks the tools of an app again in the background; "" stands for all apps. The channel is closed when
// that is done.
func (m *Manager) checkPinsAgain(workspace, name string) <-chan struct{} {
	var found []*app
	if name == "" {
		found = m.allApps()
	} else if a, err := m.find(workspace, name); err == nil {
		found = append(found, a)
	}
	checked := make(chan struct{})
	if !m.background(func(ctx context.Context) {
		defer close(checked)
		for _, a := range found {
			a.checkPinsAgain(ctx)
		}
	}) {
		close(checked)
	}
	return checked
}
