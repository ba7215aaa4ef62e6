package interact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Bundle is one version of a bundle.
type Bundle struct{ Name, Version string }

// bundleCapabilities holds what the server has learned about a bundle in use. The zero value is right for most
// bundles.
type bundleCapabilities struct {
	asks          ability // what it asks its clients for
	onlyStateless bool    // it refuses the handshake: it speaks only link.StatelessVersion
	onlySessions  bool    // it does not speak link.StatelessVersion
}

// maxBundles limits how many bundles are remembered. When it is reached, everything is forgotten and learned again.
const maxBundles = 4096

// capabilities holds what was learned about bundles, across all workspaces.
type capabilities struct {
	mu    sync.RWMutex
	known map[Bundle]bundleCapabilities
}

func (c *capabilities) get(b Bundle) bundleCapabilities {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[b]
}

// update changes what is known about a bundle and returns the capabilities before and after the change.
func (c *capabilities) update(b Bundle, change func(*bundleCapabilities)) (before, after bundleCapabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.known[b]
	after = before
	if change(&after); after == before {
		return before, after
	}
	if len(c.known) >= maxBundles {
		clear(c.known)
	}
	c.known[b] = after
	return before, after
}

// learn remembers something about the app's bundle. Only what it asks its clients for is also stored.
func (d *Dialog) learn(change func(*bundleCapabilities)) {
	b := *d.bundle.Load()
	before, after := d.broker.capabilities.update(b, change)
	if after.asks != before.asks {
		d.log.Info("app asks its clients questions, so each session that can answer gets its own instance")
		d.broker.recordAsks(b, after.asks)
	}
}

// known returns what is known about the app's bundle.
func (d *Dialog) known() bundleCapabilities { return d.broker.capabilities.get(*d.bundle.Load()) }

// OnlyStateless reports whether the app is known to speak only link.StatelessVersion.
func (d *Dialog) OnlyStateless() bool { return d.known().onlyStateless }

// LearnOnlyStateless remembers that the app speaks only link.StatelessVersion.
func (d *Dialog) LearnOnlyStateless() {
	d.learn(func(c *bundleCapabilities) { c.onlyStateless = true })
}

// asksPrefix is the prefix of the names of the settings that store what bundles ask their clients for.
const asksPrefix = "bundle.asks."

// recordTimeout limits how long it may take to store one such setting.
const recordTimeout = 5 * time.Second

// Settings stores named values that all servers of a cluster share.
type Settings interface {
	PutSetting(ctx context.Context, name, value string) error
	// Settings returns the values whose names start with prefix, by name.
	Settings(ctx context.Context, prefix string) (map[string]string, error)
}

// asksRecord is the stored form of what one version of a bundle asks its clients for. Each server learns everything
// else about a bundle on its own.
type asksRecord struct {
	Bundle  string   `json:"bundle"`
	Version string   `json:"version"`
	Asks    []string `json:"asks"`
}

func abilityWords() []struct {
	word    string
	ability ability
} {
	return []struct {
		word    string
		ability ability
	}{{"form", abilityForm}, {"url", abilityURL}, {"sampling", abilitySampling}, {"roots", abilityRoots}, {"sampling.tools", abilitySamplingTools}}
}

func newAsksRecord(b Bundle, asks ability) (name, value string) {
	r := asksRecord{Bundle: b.Name, Version: b.Version}
	for _, w := range abilityWords() {
		if asks&w.ability != 0 {
			r.Asks = append(r.Asks, w.word)
		}
	}
	sum := sha256.Sum256([]byte(b.Name + "\x00" + b.Version))
	raw, _ := json.Marshal(r) // a struct of strings always marshals
	return asksPrefix + hex.EncodeToString(sum[:16]), string(raw)
}

// abilities returns the recorded abilities. It ignores unknown words, which another version of this server wrote.
func (r asksRecord) abilities() (asks ability) {
	for _, w := range abilityWords() {
		if slices.Contains(r.Asks, w.word) {
			asks |= w.ability
		}
	}
	return asks
}

// LoadCapabilities reads what this server or another one in the cluster recorded earlier. Records that cannot be read
// are logged and skipped; the server learns them again when the bundles are used.
func (b *Broker) LoadCapabilities(ctx context.Context) {
	settings, err := b.o.Settings.Settings(ctx, asksPrefix)
	if err != nil {
		b.o.Logger.Warn("could not read what bundles ask their clients for", "error", err)
		return
	}
	for name, value := range settings {
		var r asksRecord
		if err := json.Unmarshal([]byte(value), &r); err != nil {
			b.o.Logger.Warn("could not read what a bundle asks its clients for", "setting", name, "error", err)
			continue
		}
		b.capabilities.update(Bundle{r.Bundle, r.Version}, func(c *bundleCapabilities) { c.asks |= r.abilities() })
	}
}

// recordAsks stores what a bundle asks its clients for, in the background.
func (b *Broker) recordAsks(bundle Bundle, asks ability) {
	_, leave, err := b.o.Begin(context.Background())
	if err != nil {
		return // the server is shutting down
	}
	name, value := newAsksRecord(bundle, asks)
	go func() {
		defer leave()
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		if err := b.o.Settings.PutSetting(ctx, name, value); err != nil {
			b.o.Logger.Warn("could not record what a bundle asks its clients for; it will be detected again after a restart", "bundle", bundle.Name, "error", err)
		}
	}()
}

// ChangesCapabilities reports whether a change made by another server affects recorded capabilities.
func ChangesCapabilities(c core.Change) bool {
	return c.Kind == core.ChangeAll || c.Kind == core.ChangeSetting && strings.HasPrefix(c.Name, asksPrefix)
}
