package authn

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// rights is an Access with one caller whose rights change.
type rights struct {
	mu       sync.Mutex
	now      core.Caller
	err      error
	valid    bool // Current succeeds whatever err is, because only the token has expired
	gone     bool // Current fails, because the user was deleted
	asked    int  // number of token verifications
	current  int  // number of calls to Current
	watchers map[int]func(string)
}

func (r *rights) API(context.Context, string, string) (core.Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.now.Identity, r.err
}

func (*rights) CountBearer(string, string, string) error { return nil }

func (r *rights) Caller(context.Context, core.Identity, string) (core.Caller, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.err
}

func (r *rights) Current(context.Context, core.Caller) (core.Caller, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current++
	if r.gone {
		return r.now, core.Errorf(core.CodeUnauthenticated, "x")
	}
	if r.valid {
		return r.now, nil
	}
	return r.now, r.err
}

func (r *rights) WatchRevocations(changed func(string)) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := len(r.watchers)
	r.watchers[id] = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}

// change changes the rights and announces the change for the user named by known. If known is "nobody", it announces
// nothing.
func (r *rights) change(known string, change func()) {
	r.mu.Lock()
	change()
	watchers := slices.Collect(maps.Values(r.watchers))
	r.mu.Unlock()
	for _, changed := range watchers {
		if known != "nobody" {
			changed(known)
		}
	}
}

// replaceUser deletes the user. Verifying the token again creates a new user, while Current still looks for the old
// one.
func (r *rights) replaceUser() { r.now.User.ID, r.gone = "usr_new", true }

// continues reports whether a context is still open once everything under way has finished.
func continues(ctx context.Context) bool {
	synctest.Wait()
	return ctx.Err() == nil
}

func TestAWatchEndsWhenItsCallerLosesRights(t *testing.T) {
	const user = "usr_alice"
	alice := core.Caller{
		Identity:  core.Identity{Token: "hash", User: core.User{ID: user, OrgRole: core.RoleOwner}},
		Workspace: core.Workspace{ID: "ws_a", Role: core.RoleAdmin},
	}
	for name, c := range map[string]struct {
		known    string // see change
		change   func(*rights)
		ends     bool // immediately
		endsSoon bool // for a standing stream, without an announcement
	}{
		"the token is revoked":            {user, func(r *rights) { r.err = core.Errorf(core.CodeUnauthenticated, "x") }, true, true},
		"the token has expired":           {"nobody", func(r *rights) { r.err = core.Errorf(core.CodeUnauthenticated, "x") }, false, true},
		"the membership is gone":          {user, func(r *rights) { r.err = core.Errorf(core.CodeWorkspaceDenied, "x") }, true, true},
		"the user is deleted":             {user, (*rights).replaceUser, true, true},
		"the change may affect all users": {"", func(r *rights) { r.err = core.Errorf(core.CodeUnauthenticated, "x") }, true, true},
		"the workspace role is lowered":   {user, func(r *rights) { r.now.Workspace.Role = core.RoleMember }, true, true},
		"the user's role is lowered":      {user, func(r *rights) { r.now.User.OrgRole = core.RoleAdmin }, true, true},
		"another user is gone":            {"usr_bob", func(*rights) {}, false, false},
		"nothing has changed":             {user, func(*rights) {}, false, false},
		"the rights are unknown":          {user, func(r *rights) { r.err = core.Errorf(core.CodeUnavailable, "x") }, false, false},
	} {
		for _, cred := range []Credentials{{Bearer: "token"}, {Bearer: "token", proven: true}} {
			for _, standing := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := &rights{now: alice, watchers: map[int]func(string){}}
						a := &Authenticator{Access: r, Recheck: 30 * time.Second}
						var follow func(core.Caller)
						if standing {
							follow = func(core.Caller) {}
						}
						ctx, stop := a.Watch(t.Context(), cred, alice, follow)
						if !continues(ctx) {
							t.Fatal("the watch ended although nothing had changed")
						}
						r.change(c.known, func() { c.change(r) })
						if ended := !continues(ctx); ended != c.ends {
							t.Errorf("proven %v, standing %v: ended immediately: %v, want %v", cred.proven, standing, ended, c.ends)
						}
						<-time.After(a.Recheck + time.Second)
						if ended, want := !continues(ctx), c.ends || standing && c.endsSoon; ended != want {
							t.Errorf("proven %v, standing %v: ended after the next check: %v, want %v", cred.proven, standing, ended, want)
						}
						<-time.After(provenLife)
						if ended, want := !continues(ctx), c.ends || standing && (c.endsSoon || cred.proven); ended != want {
							t.Errorf("proven %v, standing %v: ended after %s: %v, want %v", cred.proven, standing, provenLife, ended, want)
						}
						stop()
						synctest.Wait()
						if len(r.watchers) != 0 || cred.proven && r.asked > 0 || !cred.proven && r.current > 0 {
							t.Errorf("proven %v: left %d watchers, verified %d times, asked about the caller %d times", cred.proven, len(r.watchers), r.asked, r.current)
						}
					})
				})
			}
		}
	}
}

func TestAWatchNoticesAChangeDuringItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rights{err: core.Errorf(core.CodeUnauthenticated, "revoked"), watchers: map[int]func(string){}}
		a := &Authenticator{Access: r, Recheck: time.Hour}
		ctx, stop := a.Watch(t.Context(), Credentials{Bearer: "token"}, core.Caller{}, nil)
		defer stop()
		if continues(ctx) {
			t.Error("the watch continued after its token had been revoked")
		}
	})
}

func TestACheckReportsTheRightsThatACallerHasLost(t *testing.T) {
	alice := core.Caller{
		Identity:  core.Identity{User: core.User{ID: "usr_alice", OrgRole: core.RoleAdmin}},
		Workspace: core.Workspace{ID: "ws_a", Role: core.RoleAdmin},
	}
	refused := core.Errorf(core.CodeUnauthenticated, "x")
	for name, c := range map[string]struct {
		change func(*rights, *core.Caller)
		want   string // "" if the caller may continue
	}{
		"nothing":                      {func(*rights, *core.Caller) {}, ""},
		"a login":                      {func(r *rights, _ *core.Caller) { r.err = refused }, "login"},
		"an API key":                   {func(r *rights, c *core.Caller) { r.err, c.Issuer = refused, core.IssuerKey }, "API key"},
		"the membership":               {func(r *rights, _ *core.Caller) { r.err = core.Errorf(core.CodeWorkspaceDenied, "x") }, "member"},
		"a role":                       {func(r *rights, _ *core.Caller) { r.now.Workspace.Role = core.RoleMember }, "role"},
		"a token that was revoked":     {func(r *rights, c *core.Caller) { r.err, c.Token = refused, "hash" }, "login"},
		"a token that only expired":    {func(r *rights, c *core.Caller) { r.err, r.valid, c.Token = refused, true, "hash" }, ""},
		"rights that are unknown":      {func(r *rights, _ *core.Caller) { r.err = core.Errorf(core.CodeUnavailable, "x") }, ""},
		"more rights instead of fewer": {func(r *rights, _ *core.Caller) { r.now.Workspace.Role = core.RoleOwner }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, caller := &rights{now: alice}, alice
			c.change(r, &caller)
			_, err := (&Authenticator{Access: r}).Check(t.Context(), Credentials{Bearer: "b"}, caller)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// early is an Access that announces a change while a watch is starting.
type early struct{ *rights }

func (e early) WatchRevocations(changed func(string)) func() {
	changed("")
	return e.rights.WatchRevocations(changed)
}

func TestAChangeDuringTheStartOfAWatchDoesNotBlockIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Authenticator{Access: early{&rights{watchers: map[int]func(string){}}}, Recheck: time.Minute}
		_, stop := a.Watch(t.Context(), Credentials{Bearer: "token"}, core.Caller{}, nil)
		stop()
		_, stop = a.WatchCall(t.Context(), Credentials{Bearer: "token"}, core.Caller{})
		stop()
		synctest.Wait()
	})
}

func TestACallContinuesWhenItsTokenExpiresAndEndsWhenItsCallerIsDeleted(t *testing.T) {
	for name, expired := range map[string]bool{"expired": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rights{watchers: map[int]func(string){}, valid: expired}
				alice := core.Caller{Identity: core.Identity{User: core.User{ID: "usr_alice"}, Token: "hash"}}
				ctx, stop := (&Authenticator{Access: r}).WatchCall(t.Context(), Credentials{Bearer: "token"}, alice)
				defer stop()
				synctest.Wait()
				r.mu.Lock()
				r.err = core.Errorf(core.CodeUnauthenticated, "authorization required")
				notices := slices.Collect(maps.Values(r.watchers))
				r.mu.Unlock()
				notices[0]("usr_alice")
				synctest.Wait()
				if continues := ctx.Err() == nil; continues != expired {
					t.Errorf("the call continued: %v", continues)
				}
			})
		})
	}
}

func TestAWatchFollowsItsCallersGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rights{watchers: map[int]func(string){}}
		a := &Authenticator{Access: r, Recheck: time.Hour}
		var last core.Caller
		_, stop := a.Watch(t.Context(), Credentials{Bearer: "token"}, core.Caller{}, func(now core.Caller) { last = now })
		synctest.Wait()
		r.change("", func() { r.now.User.Groups = "contractors" })
		synctest.Wait()
		if last.User.Groups == "" {
			t.Errorf("the last caller has the groups %q", last.User.Groups)
		}
		stop()
		synctest.Wait()
	})
}

// quarrel is an Access that announces a change on every token verification, as happens if one person's tokens contain
// different groups.
type quarrel struct{ *rights }

func (q quarrel) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	id, err := q.rights.API(ctx, bearer, cookie)
	again := false
	q.change("nobody", func() { again = q.asked < 10_000 }) // so that the test ends even if a watch never pauses
	if again {
		q.change("", func() {})
	}
	return id, err
}

func TestWatchesThatTriggerEachOtherAreSlowedDown(t *testing.T) {
	for name, watch := range map[string]func(context.Context, *Authenticator) (stop func()){
		"a stream": func(ctx context.Context, a *Authenticator) func() {
			_, stop := a.Watch(ctx, Credentials{Bearer: "token"}, core.Caller{}, func(core.Caller) {})
			return stop
		},
		"a call": func(ctx context.Context, a *Authenticator) func() {
			_, stop := a.WatchCall(ctx, Credentials{Bearer: "token"}, core.Caller{})
			return stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rights{watchers: map[int]func(string){}}
				a := &Authenticator{Access: quarrel{r}, Recheck: time.Hour}
				defer watch(t.Context(), a)()
				defer watch(t.Context(), a)()
				r.change("", func() {})
				<-time.After(time.Minute)
				r.mu.Lock()
				asked := r.asked
				r.mu.Unlock()
				if asked > 150 {
					t.Errorf("two watches checked %d times within a minute", asked)
				}
				if asked < 100 {
					t.Errorf("two watches checked only %d times within a minute", asked)
				}
			})
		})
	}
}
