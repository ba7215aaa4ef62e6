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

// learn remembers something about the app's bundle.
func (a *app) learn(change func(*traits)) {
	record, m := a.now.Load().record, a.yard.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.known[bundleOf(record)]
	after := before
	if change(&after); after == before {
		return
	}
	if len(m.known) >= maxTraits {
		clear(m.known)
	}
	m.known[bundleOf(record)] = after
	if after.asks != before.asks {
		a.log.Info("An app asks its clients: sessions that can be asked get an instance of their own.")
	}
}
