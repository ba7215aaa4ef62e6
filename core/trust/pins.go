package trust

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// PinMode is how to treat a tool whose definition changes without a new version of its bundle.
type PinMode string

// The modes.
const (
	PinEnforce PinMode = "enforce" // hold the tool back
	PinWarn    PinMode = "warn"    // record the change, and keep the tool in use
	PinOff     PinMode = "off"     // ignore the change
)

// PinRecords keeps pins. *store.Store implements it.
type PinRecords interface {
	Pins(ctx context.Context, k core.PinKey) (map[string]core.Pin, error)
	AddPins(ctx context.Context, k core.PinKey, definitions map[string]string) error
	OfferPin(ctx context.Context, k core.PinKey, p core.Pin) (first bool, err error)
	DecidePin(ctx context.Context, k core.PinKey, tool, offered string, accept bool) error
	ChangedPins(ctx context.Context, workspace string) ([]core.PinKey, []core.Pin, error)
}

// Publisher publishes events without blocking.
type Publisher interface{ Publish(core.Event) }

// PinOptions configure Pins.
type PinOptions struct {
	Mode    PinMode
	Records PinRecords
	Events  Publisher
	Logger  hclog.Logger
	Shows   Shows
}

// Pins compares the tools of apps with their pins. It is safe for concurrent use.
type Pins struct {
	o PinOptions

	revision atomic.Uint64 // counts all decisions
	mu       sync.Mutex
	known    map[core.PinKey]map[string]digest // the accepted definitions, as last read
	failed   map[[2]string]bool                // apps that will be checked again, by workspace and name
	watcher  func(workspace, app string) <-chan struct{}
}

// checkAgainAfter is the time after which the lists of an app are checked again if a check failed.
const checkAgainAfter = 5 * time.Second

// NewPins returns Pins over the given records.
func NewPins(o PinOptions) *Pins {
	return &Pins{o: o, known: map[core.PinKey]map[string]digest{}, failed: map[[2]string]bool{}}
}

// Watch sets the function to call when an app's lists must be checked again: its pins may have changed by other means
// than Check, or Check could not compare them. check must not block; app is "" for all apps of all workspaces. The
// channel that it returns is closed when the lists have been checked again. There is one watcher. Call Watch before the
// first Check.
func (p *Pins) Watch(check func(workspace, app string) <-chan struct{}) { p.watcher = check }

// Revision changes with each decision, here or on another server. A list checked at another revision must be
// checked again.
func (p *Pins) Revision() uint64 { return p.revision.Load() }

// Reload is called when another server has changed the pins of an app; app is "" for all of them.
func (p *Pins) Reload(workspace, app string) { p.reload(workspace, app) }

// Forget is called when an app, or one account of it, is gone. Until then, its definitions are compared without reading
// the store.
func (p *Pins) Forget(workspace, app, account string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.known, func(k core.PinKey, _ map[string]digest) bool {
		return k.Workspace == workspace && k.App == app && (account == "" || k.Account == account)
	})
}

func (p *Pins) reload(workspace, app string) (checked <-chan struct{}) {
	p.mu.Lock()
	maps.DeleteFunc(p.known, func(k core.PinKey, _ map[string]digest) bool {
		return app == "" || k.Workspace == workspace && k.App == app
	})
	p.mu.Unlock()
	p.revision.Add(1)
	if p.watcher == nil {
		return nil
	}
	return p.watcher(workspace, app)
}

// checkLater schedules another check of an app's lists. Until then, tools that could not be compared are held back.
func (p *Pins) checkLater(workspace, app string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := [2]string{workspace, app}
	if p.watcher == nil || p.failed[one] {
		return
	}
	p.failed[one] = true
	time.AfterFunc(checkAgainAfter, func() {
		p.mu.Lock()
		delete(p.failed, one)
		p.mu.Unlock()
		p.watcher(workspace, app)
	})
}

// Changes returns the changes in c's workspace that were not accepted, newest first, except those of tools that are
// hidden from c.
func (p *Pins) Changes(ctx context.Context, c core.Caller) (changes []core.PinChange, err error) {
	keys, pins, err := p.o.Records.ChangedPins(ctx, c.Workspace.ID)
	for i, pin := range pins {
		if p.o.Shows.tool(c, keys[i].App, pin.Tool, pin.RenamedFrom) {
			changes = append(changes, changeOf(keys[i], pin, p.before(ctx, keys[i], pin)))
		}
	}
	return changes, err
}

// before returns the accepted definition that a change would replace.
func (p *Pins) before(ctx context.Context, k core.PinKey, pin core.Pin) string {
	if pin.Definition != "" || k.Account == "" && pin.RenamedFrom == "" {
		return pin.Definition
	}
	for _, key := range []core.PinKey{k, withoutAccount(k)} {
		pins, err := p.o.Records.Pins(ctx, key)
		if err != nil {
			p.o.Logger.Warn("could not read an app's pins", "app", k.App, "error", err)
		}
		if known := pins[cmp.Or(pin.RenamedFrom, pin.Tool)].Definition; known != "" {
			return known
		}
	}
	return ""
}

// Decide accepts or refuses a change by its id. The error is core.CodeNotFound if the workspace no longer has
// the change. An accepted definition is in use when Decide returns, and on other servers within seconds.
func (p *Pins) Decide(ctx context.Context, c core.Caller, id string, accept bool) (core.PinChange, error) {
	keys, pins, err := p.o.Records.ChangedPins(ctx, c.Workspace.ID)
	if err != nil {
		return core.PinChange{}, err
	}
	for i, pin := range pins {
		if changeID(keys[i], pin) != id || !p.o.Shows.tool(c, keys[i].App, pin.Tool, pin.RenamedFrom) {
			continue
		}
		if err := p.o.Records.DecidePin(ctx, keys[i], pin.Tool, pin.Offered, accept); err != nil {
			return core.PinChange{}, err
		}
		change := changeOf(keys[i], pin, p.before(ctx, keys[i], pin))
		change.State = core.PinRefused
		if accept {
			change.State = core.PinAccepted
		}
		if checked := p.reload(keys[i].Workspace, keys[i].App); checked != nil {
			select {
			case <-checked:
			case <-ctx.Done(): // the check continues in the background
			}
		}
		p.publish(keys[i], core.EventPinDecided, core.PinDecided{ID: id, Server: keys[i].App, Tool: pin.Tool, Decision: change.State, By: c.User.ID})
		return change, nil
	}
	return core.PinChange{}, core.Errorf(core.CodeNotFound, "there is no pending change %.100q; the tool may have changed again (see GET /v1/pins)", id)
}

func changeOf(k core.PinKey, pin core.Pin, before string) core.PinChange {
	change := core.PinChange{
		ID: changeID(k, pin), Server: k.App, Tool: pin.Tool, Version: k.Version, Account: k.Account, RenamedFrom: pin.RenamedFrom, State: core.PinWaiting,
		Changes: Differences(before, pin.Offered), Since: core.Timestamp(pin.ChangedAt),
	}
	if pin.Refused {
		change.State = core.PinRefused
	}
	return change
}

// changeID identifies one change. A change to another definition of the same tool has a different id.
func changeID(k core.PinKey, pin core.Pin) string {
	text := fmt.Sprintf("%q%q%q%q%q%q", k.Workspace, k.App, k.Bundle, k.Version, pin.Tool, pin.Offered)
	if k.Account != "" {
		text += k.Account
	}
	sum := sha256.Sum256([]byte(text))
	return "pin_" + hex.EncodeToString(sum[:8])
}

func (p *Pins) publish(k core.PinKey, name string, data any) {
	p.o.Events.Publish(core.Event{Name: name, Workspace: k.Workspace, Data: data})
}
