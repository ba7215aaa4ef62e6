package apps

import (
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// traits is what was found out about a bundle in use. The zero value is right for most.
type traits struct {
	asks      ability // what it asks its clients for
	stateless bool    // it refuses the handshake: it speaks link.StatelessVersion only
	sessions  bool    // it does not speak link.StatelessVersion
}

// maxTraits bounds the bundles that are remembered; past it the memory starts anew.
const maxTraits = 4096

// memory keeps the traits of each version of each bundle, for all workspaces.
type memory struct {
	mu    sync.RWMutex
	known map[bundleVersion]traits
}

type bundleVersion struct{ name, version string }

func newMemory() *memory { return &memory{known: map[bundleVersion]traits{}} }

func bundleOf(r core.Installation) bundleVersion { return bundleVersion{r.BundleName, r.Version} }

func (m *memory) of(r core.Installation) traits {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.known[bundleOf(r)]
}

// change changes what is known of a bundle, and returns that from before and after.
func (m *memory) change(b bundleVersion, change func(*traits)) (before, after traits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.known[b]
	after = before
	if change(&after); after == before {
		return before, after
	}
	if len(m.known) >= maxTraits {
		clear(m.known)
	}
	m.known[b] = after
	return before, after
}

// learn remembers something about the app's bundle. What it asks its clients for outlives the server.
func (a *app) learn(change func(*traits)) {
	b := bundleOf(a.now.Load().record)
	before, after := a.manager.memory.change(b, change)
	if after.asks != before.asks {
		a.log.Info("An app asks its clients: sessions that can be asked get an instance of their own.")
		a.manager.remember(b, after.asks)
	}
}
