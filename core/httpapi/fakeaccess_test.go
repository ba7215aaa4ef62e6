package httpapi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
)

// fakeAccess is an Access with bearer tokens and cookies that it looks up by name.
type fakeAccess struct {
	dev     bool
	key     string
	adapter bool
	several []string // the names of the login providers, if there are several

	mu       sync.Mutex
	bearers  map[string]core.Identity
	cookies  map[string]core.Identity
	members  map[string][]core.Workspace // by user ID
	attempts map[string]int              // login attempts, failed or not, by client
	down     bool                        // API fails as unavailable
	watchers []func(string)
	hang     bool // API does not return until the context ends
	asked    int  // number of credential checks
	binds    bool // tokens need a proof, which can be used only once
}

const attemptsAllowed = 5

func newAccess() *fakeAccess {
	return &fakeAccess{
		key: "the-right-key-0123", bearers: map[string]core.Identity{"the-right-key-0123": core.Owner()},
		cookies:  map[string]core.Identity{},
		attempts: map[string]int{},
		members: map[string][]core.Workspace{
			"usr_owner": {{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleAdmin}, {ID: "ws_second", Name: "Second", Role: core.RoleAdmin}},
		},
	}
}

func (a *fakeAccess) user(name string, org core.Role, workspaces ...core.Workspace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bearers[name] = core.Identity{Issuer: "https://idp.example", Subject: name, Token: "hash of " + name, User: core.User{ID: name, Email: name + "@example.com", OrgRole: org}}
	a.members[name] = workspaces
}

func (a *fakeAccess) Dev() bool { return a.dev }

func (a *fakeAccess) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	a.mu.Lock()
	a.asked++
	down, hang := a.down, a.hang
	id, found := a.bearers[bearer]
	if bearer == "" {
		id, found = a.cookies[cookie]
	}
	a.mu.Unlock()
	switch {
	case hang:
		<-ctx.Done()
		return core.Identity{}, ctx.Err()
	case down:
		return core.Identity{}, core.Errorf(core.CodeUnavailable, "the auth adapter is down").WithRetryAfter(1500 * time.Millisecond)
	case a.dev:
		return core.Owner(), nil
	case !found, a.binds && !core.TokenRequestOf(ctx).HasProof():
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "no such credential")
	}
	return id, nil
}

func (a *fakeAccess) Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error) {
	all, _ := a.Workspaces(ctx, id)
	for _, w := range all {
		if workspace == "" || w.ID == workspace {
			return core.Caller{Identity: id, Workspace: w}, nil
		}
	}
	return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "not a member of that workspace")
}

func (a *fakeAccess) Workspaces(_ context.Context, id core.Identity) ([]core.Workspace, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.members[id.User.ID]), nil
}

// BindsTokens implements Access.
func (a *fakeAccess) BindsTokens() bool { return a.binds }

func (a *fakeAccess) Current(ctx context.Context, c core.Caller) (core.Caller, error) {
	a.mu.Lock()
	_, found := a.bearers[c.Subject]
	a.mu.Unlock()
	if !found {
		return core.Caller{}, core.Errorf(core.CodeUnauthenticated, "revoked")
	}
	return a.Caller(ctx, c.Identity, c.Workspace.ID)
}

func (a *fakeAccess) WatchRevocations(changed func(string)) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers = append(a.watchers, changed)
	return func() {}
}

// revoke revokes a bearer token and notifies the watchers.
func (a *fakeAccess) revoke(bearer string) {
	a.mu.Lock()
	user := a.bearers[bearer].User.ID
	delete(a.bearers, bearer)
	watchers := slices.Clone(a.watchers)
	a.mu.Unlock()
	for _, changed := range watchers {
		changed(user)
	}
}

// AllowBrowserLogin implements Access.
func (a *fakeAccess) AllowBrowserLogin(client string) error {
	return a.CountWrongKey("browser at "+client, "")
}

// MCP implements Access.
func (a *fakeAccess) MCP(ctx context.Context, bearer, _ string) (core.Identity, error) {
	return a.API(ctx, bearer, "")
}

func (*fakeAccess) CountBearer(string, string, string) error { return nil }

func (a *fakeAccess) CountWrongKey(client, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts[client]++
	if a.attempts[client] > attemptsAllowed {
		return core.Errorf(core.CodeRateLimited, "too many logins").WithRetryAfter(6 * time.Second)
	}
	return nil
}

func (a *fakeAccess) Login(_ context.Context, key string) (string, error) {
	if key != a.key {
		return "", core.Errorf(core.CodeUnauthenticated, "the key is wrong")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	token := fmt.Sprintf("cookie-%d", len(a.cookies))
	a.cookies[token] = core.Owner()
	return token, nil
}

func (a *fakeAccess) Logout(_ context.Context, token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.cookies, token)
	return nil
}

func (a *fakeAccess) LoginProviders(context.Context) ([]string, error) {
	if !a.adapter {
		return nil, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	return a.several, nil
}

func (a *fakeAccess) BeginLogin(_ context.Context, r access.LoginRequest) (access.LoginStart, error) {
	if !a.adapter {
		return access.LoginStart{}, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	return access.LoginStart{URL: "https://idp.example/authorize" + r.Provider + "?redirect_uri=" + r.RedirectURI + "&state=s1&return=" + r.ReturnTo, Binding: "b1"}, nil
}

func (a *fakeAccess) AskForLogin(_ context.Context, d access.Device) (access.Device, error) {
	if !a.adapter {
		return d, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	d.Code, d.Token, d.Expires = "BCDF-GHJK", "device-token", time.Now().Add(time.Minute)
	return d, nil
}

func (a *fakeAccess) AnswerDevice(context.Context, string, bool) (access.Finished, string, error) {
	return access.Finished{}, "", core.Errorf(core.CodeUnauthenticated, "authorization required")
}

// BackchannelLogout accepts one logout token, once.
func (a *fakeAccess) BackchannelLogout(_ context.Context, token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.cookies["idp-cookie"]; token != "logout-of-alice" || !there {
		return core.Errorf(core.CodeBadRequest, "the logout token was rejected")
	}
	delete(a.cookies, "idp-cookie")
	return nil
}

func (a *fakeAccess) FinishLogin(_ context.Context, in access.LoginAnswer) (access.Finished, error) {
	if !a.adapter {
		return access.Finished{}, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	if in.State != "s1" || in.Code != "c1" || in.Binding != "b1" || in.Issuer == "https://another.example" {
		return access.Finished{}, core.Errorf(core.CodeUnauthenticated, "the state is unknown")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cookies["idp-cookie"] = a.bearers["alice"]
	return access.Finished{Token: "idp-cookie", ReturnTo: "/apps?tab=1", Provider: "idp", User: a.bearers["alice"].User}, nil
}
