package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// Store stores accounts. *store.Store implements it.
type Store interface {
	Encrypts() bool
	Installation(ctx context.Context, workspace, name string) (core.Installation, error)
	User(ctx context.Context, id string) (core.User, error)
	Workspaces(ctx context.Context, u core.User) ([]core.Workspace, error)

	LinkAccount(ctx context.Context, a core.Account) (core.Account, error)
	Account(ctx context.Context, id string) (core.Account, error)
	Accounts(ctx context.Context, workspace string) ([]core.Account, error)
	RenewAccount(ctx context.Context, id string, renew func(ctx context.Context, a *core.Account) (changed bool, err error)) (core.Account, error)
	ChangeAccount(ctx context.Context, id string, change core.AccountChange) (core.Account, error)
	UnlinkAccount(ctx context.Context, id string) (core.Account, error)

	OAuthClient(ctx context.Context, r core.ClientRegistration) (core.OAuthClient, error)
	PutOAuthClient(ctx context.Context, r core.ClientRegistration, c core.OAuthClient) error
	DeleteOAuthClient(ctx context.Context, r core.ClientRegistration) error

	ClaimRevocations(ctx context.Context, limit int, retry time.Duration) ([]core.AccountRevocation, error)
	RevocationDone(ctx context.Context, account string) error

	AppLists(ctx context.Context, workspace, app string) (lists core.AppLists, account string, err error)
	PutAppLists(ctx context.Context, workspace, app, account string, lists core.AppLists) error
	AccountLists(ctx context.Context, workspace, app, account string) (map[string]core.AppLists, error)
	PutAccountLists(ctx context.Context, a core.Account, lists core.AppLists) error

	// PutLogin and TakeLogin store logins that are in progress with an authorization server, under the hash of their
	// state.
	PutLogin(ctx context.Context, state, client string, login json.RawMessage, expires time.Time) error
	TakeLogin(ctx context.Context, state string) (json.RawMessage, error)
}

// Apps returns how the server authenticates to apps, and is notified of changes to accounts. *apps.Manager implements
// it.
type Apps interface {
	AuthOf(workspace, app string) (core.RemoteAuth, error)
	AccountLinked(a core.Account)
	AccountUnlinked(account string)
	DefaultAccountChanged(workspace string)
	// UsesAccounts reports whether people can link accounts for any app in a workspace.
	UsesAccounts(workspace string) bool
	ExchangeApps(workspace string) []string
	// OfferOf returns an offer with the lists that apps last showed to accounts.
	OfferOf(shared *core.Offer, accounts []core.Account) *core.Offer
	// ListsTool reports whether an app listed a tool to an account, or has not listed anything to it yet.
	ListsTool(a core.Account, tool string) bool
}

// Publisher publishes events without blocking.
type Publisher interface{ Publish(core.Event) }

// Options configure a Manager.
type Options struct {
	Store   Store
	Events  Publisher
	Logger  hclog.Logger
	Remote  remote.Options // how to reach authorization servers, and which addresses are allowed
	MakeKey func() error   // creates the key that encrypts tokens if there is none; nil if the operator must create it
	Dev     bool           // every caller is the owner, who is then treated as a person
	BaseURL string         // the public address without a trailing slash; "" if it is not configured
	URL     func() string  // the address of this server, used if BaseURL is ""
}

const (
	maxCached = 10_000           // cached accounts, and cached workspaces
	cacheLife = 10 * time.Second // bounds the effect of a lost notice from a peer server
)

// Manager manages the linked accounts of all workspaces. It is safe for concurrent use.
type Manager struct {
	o       Options
	log     hclog.Logger
	apps    Apps
	public  *http.Client
	private *http.Client // for authorization servers of apps at private addresses

	renewals    singleflight.Group // by account
	renewing    *slots
	discoveries singleflight.Group // by app
	reads       singleflight.Group // by workspace and number of changes
	appServers  *lru.Cache[string, appServers]
	grants      *lru.Cache[string, core.Account]

	mu      sync.Mutex
	listed  map[string]workspaceAccounts // by workspace
	changed chan struct{}                // closed at the next change of an account
	changes uint64                       // number of changes

	exchanges *lru.Cache[string, *exchanged] // by the ID of the account
	checked   *lru.Cache[string, time.Time]  // when PublishExchangeApps last looked, by workspace

	wake chan struct{} // capacity 1; wakes the revoker

	making sync.Mutex // held while the first key is created
}

// workspaceAccounts contains the accounts of a workspace, by owner.
type workspaceAccounts struct {
	accounts map[string][]core.Account
	until    time.Time
}

// New returns a Manager. Run starts it.
func New(o Options) *Manager {
	grants, _ := lru.New[string, core.Account](maxCached) // the only error is a size below 1
	servers, _ := lru.New[string, appServers](maxCached)
	exchanges, _ := lru.New[string, *exchanged](maxCached)
	checked, _ := lru.New[string, time.Time](maxCached)
	private := o.Remote
	private.AllowPrivate = true
	m := &Manager{
		o: o, log: o.Logger, public: remote.NewClient(o.Remote), private: remote.NewClient(private), grants: grants, appServers: servers, exchanges: exchanges, checked: checked, renewing: newSlots(),
		listed: map[string]workspaceAccounts{}, changed: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	if m.log == nil {
		m.log = hclog.NewNullLogger()
	}
	return m
}

// SetApps sets the apps manager. Call it before anything else.
func (m *Manager) SetApps(a Apps) { m.apps = a }

// client returns the HTTP client for an app's authorization server; private allows private addresses.
func (m *Manager) client(private bool) *http.Client {
	if private {
		return m.private
	}
	return m.public
}

// Changed drops everything cached about an account, "" for all accounts, after a change here or on a peer server.
func (m *Manager) Changed(account string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if account == "" {
		m.grants.Purge()
	} else {
		m.grants.Remove(account)
	}
	m.changes++
	clear(m.listed)
	close(m.changed)
	m.changed = make(chan struct{})
}

// inWorkspace returns the accounts of a workspace by owner. Calls that need them at the same time share one read of the
// store.
func (m *Manager) inWorkspace(ctx context.Context, workspace string) (map[string][]core.Account, error) {
	known, since := m.cached(workspace)
	if time.Now().Before(known.until) {
		return known.accounts, nil
	}
	select {
	case r := <-m.read(ctx, workspace, since):
		all, _ := r.Val.(map[string][]core.Account)
		return all, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the accounts of a workspace in the background, unless that is in progress.
func (m *Manager) read(ctx context.Context, workspace string, since uint64) <-chan singleflight.Result {
	return m.reads.DoChan(fmt.Sprint(since, " ", workspace), func() (any, error) {
		return m.readWorkspace(context.WithoutCancel(ctx), workspace, since)
	})
}

// cached returns the accounts of a workspace as they were last read, and the number of changes so far.
func (m *Manager) cached(workspace string) (known workspaceAccounts, since uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed[workspace], m.changes
}

// readWorkspace reads the accounts of a workspace from the store, and caches them unless an account has changed since.
func (m *Manager) readWorkspace(ctx context.Context, workspace string, since uint64) (map[string][]core.Account, error) {
	accounts, err := m.o.Store.Accounts(ctx, workspace)
	if err != nil {
		return nil, err
	}
	all := map[string][]core.Account{}
	for _, a := range accounts {
		a.Grant = core.Grant{} // whoever needs the tokens of an account reads that account
		all[a.Owner] = append(all[a.Owner], a)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes == since {
		if len(m.listed) >= maxCached {
			clear(m.listed)
		}
		m.listed[workspace] = workspaceAccounts{all, time.Now().Add(cacheLife)}
	}
	return all, nil
}

// Published implements apps.Accounts.
func (m *Manager) Published(ctx context.Context, workspace, app string) (core.AppLists, error) {
	lists, _, err := m.o.Store.AppLists(ctx, workspace, app)
	if core.CodeOf(err) == core.CodeNotFound {
		return core.AppLists{}, nil
	}
	return lists, err
}

// Listed implements apps.Accounts.
func (m *Manager) Listed(ctx context.Context, workspace, app, account string) (map[string]core.AppLists, error) {
	return m.o.Store.AccountLists(ctx, workspace, app, account)
}

// Publish implements apps.Accounts. The lists that a person's account sees are stored for that person. An app is
// published with the lists of one admin's account until that account is gone. If callers' tokens are exchanged,
// anybody's lists can publish the app, but an admin's take precedence.
func (m *Manager) Publish(ctx context.Context, account string, lists core.AppLists) (bool, error) {
	a, err := m.account(ctx, account)
	if err != nil {
		return false, err
	}
	if isLinked := !strings.HasPrefix(account, exchangedPrefix); isLinked && a.Owner != "" {
		if err := m.o.Store.PutAccountLists(ctx, a, lists); err != nil || !m.isAdmins(ctx, a) {
			return false, err
		}
	}
	_, before, err := m.o.Store.AppLists(ctx, a.Workspace, a.App)
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		return false, err
	}
	if before != "" && before != account {
		other, err := m.account(ctx, before)
		switch {
		case core.CodeOf(err) == core.CodeNotFound:
		case err != nil:
			return false, err
		case other.State == core.AccountActive && (m.isAdmins(ctx, other) || !m.isAdmins(ctx, a)):
			return false, nil
		}
	}
	return true, m.o.Store.PutAppLists(ctx, a.Workspace, a.App, account, lists)
}

// isAdmins reports whether an account belongs to an admin of its workspace, or was linked by an admin for everybody.
func (m *Manager) isAdmins(ctx context.Context, a core.Account) bool {
	if a.Owner == "" {
		return true
	}
	user, err := m.o.Store.User(ctx, a.Owner)
	if err != nil {
		return false
	}
	all, err := m.o.Store.Workspaces(ctx, user)
	for _, w := range all {
		if w.ID == a.Workspace {
			return err == nil && w.Role.Admin()
		}
	}
	return false
}

// publish announces a change to an account to its owner, or to everybody for a shared account.
func (m *Manager) publish(event string, a core.Account) {
	m.o.Events.Publish(core.Event{
		Name: event, Workspace: a.Workspace, Owner: a.Owner, Data: core.AccountChanged{ID: a.ID, App: a.App, Name: a.Name},
	})
}

// nameForm is the form of account names, which become parts of tool names.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// DefaultName is the name of an account that is linked without one.
const DefaultName = "main"

// CheckName returns core.CodeBadRequest for an invalid account name.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return core.Errorf(core.CodeBadRequest, "the name of an account must have 1 to 32 lower-case letters, digits and hyphens, and must not begin or end with a hyphen")
	}
	return nil
}
