package accounts

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAnUnlinkedAccountIsRevokedAndNoLongerUsed(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a, other := r.link(t, p, r.caller, "one"), r.link(t, p, r.person(t, "bob"), "one")
	if err := r.Unlink(t.Context(), r.caller, other.ID); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("alice unlinked bob's account: %v", err)
	}
	if err := r.Unlink(t.Context(), r.caller, a.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeLoginNeeded {
		t.Errorf("its token: %v", err)
	}
	due, err := r.store.ClaimRevocations(t.Context(), 10, 0)
	if err != nil || len(due) != 1 {
		t.Fatalf("%d revocations: %v", len(due), err)
	}
	r.finishRevocation(t.Context(), due[0])
	if want := []string{a.Grant.RefreshToken.Reveal(), a.Grant.AccessToken.Reveal()}; !slices.Equal(p.revoked, want) {
		t.Errorf("revoked: %v, want %v", p.revoked, want)
	}
	if due, err := r.store.ClaimRevocations(t.Context(), 10, 0); err != nil || len(due) > 0 {
		t.Errorf("%d revocations remain: %v", len(due), err)
	}
}

func TestAccountsOfPeopleWhoLeaveAreRevoked(t *testing.T) {
	for name, leave := range map[string]func(r *rig) error{
		"a user who is deleted": func(r *rig) error { return r.store.DeleteUser(t.Context(), r.caller.User.ID) },
		"a member who is removed": func(r *rig) error {
			return r.store.DeleteMember(t.Context(), core.DefaultWorkspaceID, r.caller.User.ID)
		},
		"an app that is removed": func(r *rig) error {
			return r.store.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "far", "first")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			a := r.link(t, p, r.caller, "")
			if err := leave(r); err != nil {
				t.Fatal(err)
			}
			r.MembersChanged("")
			if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeLoginNeeded {
				t.Errorf("its token: %v", err)
			}
			due, err := r.store.ClaimRevocations(t.Context(), 10, 0)
			if err != nil || len(due) != 1 || due[0].Account != a.ID || due[0].Grant.RefreshToken != a.Grant.RefreshToken {
				t.Errorf("%d revocations: %v", len(due), err)
			}
		})
	}
}

// endsGrants makes a provider behave like authorization servers that have a single grant for a person and a client:
// revoking one of its tokens ends the grant.
func endsGrants(p *provider) {
	p.fail = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/revoke" {
			clear(p.current)
			clear(p.codes)
		}
		return false
	}
}

func TestAReplacedLoginIsRevokedButTheNewOneIsKept(t *testing.T) {
	for name, prepare := range map[string]func(p *provider){"each login has a grant": func(*provider) {}, "all logins have one grant": endsGrants} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.change(prepare)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			a := r.link(t, p, r.caller, "")
			again := r.link(t, p, r.caller, "")
			if want := []string{a.Grant.RefreshToken.Reveal(), a.Grant.AccessToken.Reveal()}; !slices.Equal(p.revoked, want) {
				t.Errorf("revoked: %v, want %v", p.revoked, want)
			}
			if due, err := r.store.ClaimRevocations(t.Context(), 10, 0); err != nil || len(due) > 0 {
				t.Errorf("%d revocations remain, which may end the new login: %v", len(due), err)
			}
			r.expire(t, again.ID)
			if token, err := r.Authorizer(again.ID).Token(t.Context(), ""); err != nil || again.ID != a.ID || token.Access == a.Grant.AccessToken {
				t.Errorf("the new login: %v", err)
			}
		})
	}
	t.Run("at another server", func(t *testing.T) {
		p, next := newProvider(t), newProvider(t)
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		a := r.link(t, p, r.caller, "")
		p.change(func(p *provider) { p.resource["authorization_servers"] = []string{next.URL} })
		r.link(t, next, r.caller, "")
		due, err := r.store.ClaimRevocations(t.Context(), 10, 0)
		if err != nil || len(due) != 1 {
			t.Fatalf("%d revocations: %v", len(due), err)
		}
		r.finishRevocation(t.Context(), due[0])
		if want := []string{a.Grant.RefreshToken.Reveal(), a.Grant.AccessToken.Reveal()}; !slices.Equal(p.revoked, want) || len(next.revoked) > 0 {
			t.Errorf("revoked: %v, want %v; at the new server %v", p.revoked, want, next.revoked)
		}
	})
	t.Run("at a server that does not revoke", func(t *testing.T) {
		p := newProvider(t)
		p.change(func(p *provider) {
			responds("/revoke", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })(p, nil)
		})
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		a := r.link(t, p, r.caller, "")
		if again := r.link(t, p, r.caller, ""); again.Grant.AccessToken == a.Grant.AccessToken {
			t.Error("the new login was not stored")
		}
	})
}

func TestAccountsOfAnUninstalledAppAreHiddenUntilItIsRestored(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	if err := r.store.Uninstall(t.Context(), core.DefaultWorkspaceID, "far", "first", time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all, err := r.List(t.Context(), r.caller); err != nil || len(all) != 0 {
		t.Errorf("listed: %+v, %v", all, err)
	}
	name := "other"
	_, changed := r.Change(t.Context(), r.caller, a.ID, core.AccountChange{Name: &name})
	_, chosen := r.Choose(t.Context(), r.caller, "far", core.AccountWanted{})
	for what, err := range map[string]error{"changed": changed, "unlinked": r.Unlink(t.Context(), r.caller, a.ID), "chosen": chosen} {
		if core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if due, err := r.store.ClaimRevocations(t.Context(), 10, 0); err != nil || len(due) != 0 {
		t.Errorf("%d revocations: %v", len(due), err)
	}
	if _, err := r.store.RestoreInstallation(t.Context(), core.DefaultWorkspaceID, "far"); err != nil {
		t.Fatal(err)
	}
	if all, err := r.List(t.Context(), r.caller); err != nil || len(all) != 1 || all[0].ID != a.ID {
		t.Errorf("listed after the undo: %+v, %v", all, err)
	}
}
