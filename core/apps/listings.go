package apps

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/trust"
)

// listings holds the lists that an app last sent to each account, by Account.ID.
type listings struct {
	mu        sync.Mutex // held while they are changed
	byAccount atomic.Pointer[map[string]*listing]
}

type listing struct {
	sum    [sha256.Size]byte // the hash of the lists as the app sent them
	listed core.Offer
	shown  *core.Offer // without what is held back; accounts that see the same lists share one value
}

func (l *listings) load() map[string]*listing {
	if all := l.byAccount.Load(); all != nil {
		return *all
	}
	return nil
}

// storedLists are lists that an app sent earlier.
type storedLists map[core.Kind][]json.RawMessage

// List implements offer.Lister.
func (l storedLists) List(_ context.Context, kind core.Kind) ([]json.RawMessage, error) {
	return l[kind], nil
}

// usesOwnAccounts reports whether each person calls the app with their own account.
func (a *app) usesOwnAccounts() bool {
	remote := a.now.Load().record.Remote
	return remote != nil && remote.Auth.Type == core.AuthUser
}

// loadListings reads the lists that the app sent to an account, or to all accounts if account is "", and checks them
// against the pins.
func (a *app) loadListings(ctx context.Context, account string) error {
	if !a.usesOwnAccounts() {
		return nil
	}
	a.listings.mu.Lock()
	defer a.listings.mu.Unlock()
	stored, err := a.manager.o.Accounts.Listed(ctx, a.key.Workspace, a.key.Name, account)
	if err != nil {
		return err
	}
	next := map[string]*listing{}
	if account != "" {
		maps.Copy(next, a.listings.load())
		delete(next, account)
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if next[id], err = a.newListing(ctx, next, id, stored[id], false); err != nil {
			return err
		}
	}
	a.setListings(next)
	return nil
}

// showListing replaces the lists that the app sent to an account.
func (a *app) showListing(ctx context.Context, account string, lists core.AppLists, dynamic bool) error {
	a.listings.mu.Lock()
	defer a.listings.mu.Unlock()
	next := map[string]*listing{}
	maps.Copy(next, a.listings.load())
	one, err := a.newListing(ctx, next, account, lists, dynamic)
	if err != nil {
		return err
	}
	next[account] = one
	a.setListings(next)
	return nil
}

func (a *app) forgetListing(account string) {
	a.listings.mu.Lock()
	defer a.listings.mu.Unlock()
	if next := maps.Clone(a.listings.load()); next[account] != nil {
		delete(next, account)
		a.setListings(next)
	}
}

// newListing checks the lists of an account against the pins. all holds the listings of other accounts.
func (a *app) newListing(ctx context.Context, all map[string]*listing, account string, lists core.AppLists, dynamic bool) (*listing, error) {
	raw, err := json.Marshal(lists)
	if err != nil {
		return nil, err
	}
	next := &listing{sum: sha256.Sum256(raw)}
	record := a.now.Load().record
	for _, other := range all {
		if other.sum == next.sum {
			next.listed = other.listed
			break
		}
	}
	if next.listed.Tools == nil {
		reader := offer.Reader{Server: a.key.Name, Logger: a.log, Tools: record.Tools, Headers: lists.Stateless}
		if next.listed, err = reader.ReadAll(ctx, storedLists(lists.Lists)); err != nil {
			return nil, err
		}
	}
	shown := next.listed
	if a.manager.o.Pins != nil {
		key := a.pinKeyOf(lists.Version)
		key.Account = account
		before := []core.Tool{}
		if now := a.listings.load()[account]; now != nil {
			before = append(before, now.listed.Tools...)
		}
		if shown, err = a.manager.o.Pins.CheckOffer(ctx, trust.Listing{Key: key, Dynamic: dynamic, Before: before}, next.listed, ""); err != nil {
			return nil, err
		}
	}
	next.shown = &shown
	for _, other := range all {
		if len(offer.Differences(other.shown, &shown)) == 0 {
			next.shown = other.shown
			break
		}
	}
	return next, nil
}

// setListings shows new listings, and announces them if they differ. An account whose lists have not changed keeps the
// same value.
func (a *app) setListings(next map[string]*listing) {
	now := a.listings.load()
	same := map[*core.Offer]*core.Offer{}
	changed := len(now) != len(next)
	for account, one := range next {
		before, one := now[account], *one // copy it: other goroutines may read the value through now
		switch known := same[one.shown]; {
		case known != nil:
			one.shown = known
		case before != nil && len(offer.Differences(before.shown, one.shown)) == 0:
			same[one.shown] = before.shown
			one.shown = before.shown
		}
		next[account] = &one
		changed = changed || before == nil || before.shown != one.shown
	}
	a.listings.byAccount.Store(&next)
	for account := range now {
		if next[account] == nil {
			a.manager.forgetPins(a.key, account)
		}
	}
	if changed {
		a.manager.catalog.Announce(a.key.Workspace)
	}
}

// listing returns the lists that an app last sent to an account, or nil if they are unknown or currently not shown.
func (m *Manager) listing(account core.Account) *core.Offer {
	a, err := m.find(account.Workspace, account.App)
	if err != nil || !a.usesOwnAccounts() || !a.now.Load().shows() {
		return nil
	}
	if one := a.listings.load()[account.ID]; one != nil {
		return one.shown
	}
	return nil
}

// ListsTool reports whether a tool was in the list that an app last sent to an account. It returns true if the lists
// are unknown.
func (m *Manager) ListsTool(account core.Account, tool string) bool {
	lists := m.listing(account)
	return lists == nil || slices.ContainsFunc(lists.Tools, func(t core.Tool) bool { return t.Name == tool })
}

// maxOwnOffers limits how many different offers to people with accounts are cached.
const maxOwnOffers = 1024

// ownLists are the lists that an app last showed to one account.
type ownLists struct {
	app string
	*core.Offer
}

// ownOffer is the offer to people whose accounts see the same lists.
type ownOffer struct {
	shared *core.Offer
	lists  []ownLists
	merged *core.Offer
}

// OfferOf returns an offer with the lists that the given accounts last saw: for each app, those of the default
// account, followed by what only the others saw. It returns the same value until something changes, and shared itself
// if nothing differs.
func (m *Manager) OfferOf(shared *core.Offer, accounts []core.Account) *core.Offer {
	own := ownOffer{shared: shared}
	key := fmt.Appendf(nil, "%p", shared) // the cached value keeps shared alive, so nothing else gets its address
	for _, first := range []bool{true, false} {
		for _, account := range accounts {
			if account.Default != first {
				continue
			}
			if lists := m.listing(account); lists != nil {
				own.lists, key = append(own.lists, ownLists{account.App, lists}), fmt.Appendf(key, " %p", lists)
			}
		}
	}
	if len(own.lists) == 0 {
		return shared
	}
	if known, ok := m.ownOffers.Get(string(key)); ok {
		return known.merged
	}
	byApp := map[string][]*core.Offer{}
	for _, one := range own.lists {
		byApp[one.app] = append(byApp[one.app], one.Offer)
	}
	replaced := make(map[string]*core.Offer, len(byApp))
	for app, lists := range byApp {
		replaced[app] = offer.Union(lists)
	}
	own.merged = offer.With(shared, replaced)
	if known, ok, _ := m.ownOffers.PeekOrAdd(string(key), own); ok {
		return known.merged
	}
	return own.merged
}
