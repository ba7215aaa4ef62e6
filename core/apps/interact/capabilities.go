package interact

import (
	"sync"
)

// Bundle is one version of a bundle.
type Bundle struct{ Name, Version string }

// bundleCapabilities is what was found out about a bundle in use. The zero value is right for most.
type bundleCapabilities struct {
	asks          ability // what it asks its clients for
	onlyStateless bool    // it refuses the handshake: it speaks link.StatelessVersion only
	onlySessions  bool    // it does not speak link.StatelessVersion
}

// maxBundles bounds the bundles that are remembered; past it the memory starts anew.
const maxBundles = 4096

// capabilities keeps what was found out about bundles, for all workspaces.
type capabilities struct {
	mu    sync.RWMutex
	known map[Bundle]bundleCapabilities
}

func newCapabilities() *capabilities {
	return &capabilities{known: map[Bundle]bundleCapabilities{}}
}

func (c *capabilities) get(b Bundle) bundleCapabilities {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[b]
}

// update changes what is known of a bundle, and returns it from before and after.
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

// learn remembers something about the app's bundle. What it asks its clients for is also recorded.
func (d *Dialog) learn(change func(*bundleCapabilities)) {
	b := d.app.Bundle()
	before, after := d.broker.capabilities.update(b, change)
	if after.asks != before.asks {
		d.log.Info("app asks its clients: each session that can be asked gets an instance of its own")
		d.broker.recordAsks(b, after.asks)
	}
}

// known returns what is known of the app's bundle.
func (d *Dialog) known() bundleCapabilities { return d.broker.capabilities.get(d.app.Bundle()) }

// OnlyStateless reports whether the app is known to speak link.StatelessVersion only.
func (d *Dialog) OnlyStateless() bool { return d.known().onlyStateless }

// LearnOnlyStateless remembers that the app speaks link.StatelessVersion only.
func (d *Dialog) LearnOnlyStateless() {
	d.learn(func(c *bundleCapabilities) { c.onlyStateless = true })
}
