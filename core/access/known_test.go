package access

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// outage is a store with one user, bob, who is a member of ws_a, has an API key and is logged in. The store
// can be made unavailable.
type outage struct {
	refused atomic.Bool // every call fails immediately
	silent  atomic.Bool // every call blocks until its context ends
	removed atomic.Bool // bob is no longer a member
	reads   atomic.Int64
}

func (o *outage) read(ctx context.Context) error {
	o.reads.Add(1)
	switch {
	case o.refused.Load():
		return errors.New("connection refused")
	case o.silent.Load():
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (o *outage) Provision(ctx context.Context, id core.Identity, _ []string) (core.User, error) {
	id.User.ID = "usr_" + id.Subject
	return id.User, o.read(ctx)
}

func (o *outage) User(ctx context.Context, id string) (core.User, error) {
	return core.User{ID: id}, o.read(ctx)
}

func (o *outage) Workspaces(ctx context.Context, _ core.User) ([]core.Workspace, error) {
	if o.removed.Load() {
		return nil, o.read(ctx)
	}
	return []core.Workspace{{ID: "ws_a", Role: core.RoleMember}}, o.read(ctx)
}

func (o *outage) APIKey(ctx context.Context, _ string) (core.APIKey, error) {
	return core.APIKey{ID: "key", Issuers: []string{core.IssuerLocal}, User: core.User{ID: "usr_bob", OrgRole: core.RoleMember}, Workspace: "ws_a", Role: core.RoleMember, LastUsedAt: time.Now()}, o.read(ctx)
}

func (*outage) APIKeys(context.Context, string, string) ([]core.APIKey, error) { return nil, nil }
func (*outage) APIKeyUsed(context.Context, string, time.Time) error            { return nil }

func (o *outage) Cookie(ctx context.Context, hash string) (core.Cookie, error) {
	return core.Cookie{
		Hash: hash, Identity: core.Identity{Issuer: "https://idp", Subject: "bob", User: core.User{ID: "usr_bob", OrgRole: core.RoleMember}},
		ExpiresAt: time.Now().Add(time.Hour),
	}, o.read(ctx)
}
func (*outage) ClaimCheck(context.Context, core.Cookie, time.Duration) (bool, error) {
	return false, nil
}
func (*outage) CookieChecked(context.Context, core.Cookie) error { return nil }
func (*outage) PutCookie(context.Context, core.Cookie) error     { return nil }
func (*outage) DeleteCookie(context.Context, string) error       { return nil }
func (*outage) WatchMembers(func(string))                        {}
func (*outage) EndLogins(context.Context, string) error          { return nil }
func (*outage) PutLogin(context.Context, string, string, json.RawMessage, time.Time) error {
	return nil
}

// session makes the calls of an open session with one kind of credentials: a token, an API key or a login.
type session struct {
	bearer, cookie string
}

func sessions() map[string]session {
	return map[string]session{"a token": {bearer: "token-of-bob"}, "an API key": {bearer: "rwk_text"}, "a login": {cookie: "cookie"}}
}

func (s session) call(ctx context.Context, a *Access) error {
	id, err := a.API(ctx, s.bearer, s.cookie)
	if err == nil {
		_, err = a.Caller(ctx, id, "ws_a")
	}
	return err
}

// withSession opens a session of each kind, then calls do.
func withSession(t *testing.T, stale time.Duration, do func(t *testing.T, a *Access, o *outage, s session)) {
	for name, s := range sessions() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, p := &outage{}, newProvider("https://idp", "bob")
				a := New(Options{Providers: only(p), Users: o, Cookies: o, Keys: o, StaleMembership: stale})
				if err := s.call(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				do(t, a, o, s)
			})
		})
	}
}

func TestCallsOfOpenSessionsSucceedWhileTheDatabaseIsUnavailableForAMinute(t *testing.T) {
	withSession(t, 5*time.Minute, func(t *testing.T, a *Access, o *outage, s session) {
		o.refused.Store(true)
		reads, calls := o.reads.Load(), 0
		for end := time.Now().Add(time.Minute); time.Now().Before(end); calls++ {
			if err := s.call(t.Context(), a); err != nil {
				t.Fatalf("call %d: %v", calls, err)
			}
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the clock of the bubble
		}
		if n := o.reads.Load() - reads; n > 100 {
			t.Errorf("%d calls caused %d lookups", calls, n)
		}
		o.refused.Store(false)
		o.removed.Store(true)
		time.Sleep(membersLife) //nolint:forbidigo // the clock of the bubble
		if err := s.call(t.Context(), a); core.CodeOf(err) != core.CodeWorkspaceDenied {
			t.Errorf("once the database is available again, its answer must apply; got %v", err)
		}
	})
}

func TestACachedMembershipIsUsedOnlyUntilItExpires(t *testing.T) {
	withSession(t, 5*time.Minute, func(t *testing.T, a *Access, o *outage, s session) {
		o.refused.Store(true)
		time.Sleep(5*time.Minute - time.Second) //nolint:forbidigo // the clock of the bubble
		if err := s.call(t.Context(), a); err != nil {
			t.Errorf("just before it expires: %v", err)
		}
		time.Sleep(time.Second + staleRetry) //nolint:forbidigo // the clock of the bubble
		if err := s.call(t.Context(), a); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("after it has expired: %v", err)
		}
	})
	withSession(t, 0, func(t *testing.T, a *Access, o *outage, s session) {
		o.refused.Store(true)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		if err := s.call(t.Context(), a); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("with 0: %v", err)
		}
	})
}

func TestAReceivedRevocationAppliesWhileTheDatabaseIsUnavailable(t *testing.T) {
	for _, whose := range []string{"usr_bob", ""} {
		withSession(t, 5*time.Minute, func(t *testing.T, a *Access, o *outage, s session) {
			o.refused.Store(true)
			if err := s.call(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			a.MembersChanged(whose)
			if err := s.call(t.Context(), a); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("after the revocation: %v", err)
			}
		})
	}
	withSession(t, 5*time.Minute, func(t *testing.T, a *Access, o *outage, s session) {
		o.refused.Store(true)
		a.MembersChanged("usr_somebody_else")
		if err := s.call(t.Context(), a); err != nil {
			t.Errorf("a revocation of another user: %v", err)
		}
	})
}

func TestARevokedTokenRoleDoesNotApplyWhileTheDatabaseIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, p := &outage{}, newProvider("https://idp", "bob")
		admin := p.identity("bob")
		admin.OrgRole = "admin"
		p.tokens["admin"] = admin
		a := New(Options{Providers: only(p), Users: o, Cookies: o, Keys: o, StaleMembership: time.Minute})
		if id, err := a.API(t.Context(), "admin", ""); err != nil || !id.User.OrgRole.Admin() {
			t.Fatalf("%+v, %v", id, err)
		}
		o.refused.Store(true)
		if id, err := a.API(t.Context(), "token-of-bob", ""); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("%+v, %v", id, err)
		}
	})
}

func TestAnUnresponsiveDatabaseDelaysAnOpenSessionByAtMostASecond(t *testing.T) {
	withSession(t, 5*time.Minute, func(t *testing.T, a *Access, o *outage, s session) {
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		o.silent.Store(true)
		began := time.Now()
		if err := s.call(t.Context(), a); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*staleWait { // one lookup for the user, one for the membership
			t.Errorf("the call took %v", took)
		}
		began = time.Now()
		if err := s.call(t.Context(), a); err != nil || time.Since(began) > 0 {
			t.Errorf("the next call: %v after %v", err, time.Since(began))
		}
	})
}
