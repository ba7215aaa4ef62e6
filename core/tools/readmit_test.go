package tools_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// rights is a tools.Access in which callers lose theirs.
type rights struct {
	now func(core.Caller) (core.Caller, error)
}

func (r *rights) Current(_ context.Context, c core.Caller) (core.Caller, error) { return r.now(c) }

func TestACallThatWaitedForAnApprovalIsCheckedAgainBeforeItIsMade(t *testing.T) {
	becomes := func(change func(*core.Caller), err error) func(*testing.T, *held) {
		return func(_ *testing.T, h *held) {
			h.access.now = func(c core.Caller) (core.Caller, error) {
				change(&c)
				return c, err
			}
		}
	}
	gone := func(c *core.Caller) { *c = core.Caller{} }
	narrow := func(t *testing.T, h *held) {
		t.Helper()
		if _, err := h.views.Set(t.Context(), core.DefaultWorkspaceID, core.View{Name: "v", Default: core.ViewDenies, Include: []core.ToolRule{{App: "files"}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, tool string
		change     func(*testing.T, *held)
		want       core.Code // "" if the call is made
	}{
		{"nothing changes", "system__erase", func(*testing.T, *held) {}, ""},
		{"nothing changes, and a view renames the tool", "mail__post", func(*testing.T, *held) {}, ""},
		{"the admin is a member now", "system__erase", becomes(func(c *core.Caller) { c.User.OrgRole = core.RoleMember }, nil), core.CodeForbidden},
		{"the membership has ended", "mail__post", becomes(gone, core.Errorf(core.CodeWorkspaceDenied, "not a member")), core.CodeWorkspaceDenied},
		{"the key was revoked", "system__erase", becomes(gone, core.Errorf(core.CodeUnauthenticated, "no such key")), core.CodeUnauthenticated},
		{"the rights are unknown", "mail__post", becomes(gone, core.Errorf(core.CodeUnavailable, "no database")), core.CodeUnavailable},
		{"the view hides the tool", "mail__post", narrow, core.CodeToolNotFound},
		{"the view hides the server's tool", "system__erase", narrow, core.CodeToolNotFound},
		{"the app is gone", "mail__post", func(_ *testing.T, h *held) { h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{}) }, core.CodeToolNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHeld(t, 10*time.Second)
			if _, err := h.views.Set(t.Context(), core.DefaultWorkspaceID, core.View{Name: "v", Tools: map[string]core.Relabel{"mail__send": {Name: "post"}}}); err != nil {
				t.Fatal(err)
			}
			made := make(chan struct{}, 1)
			erase := system("erase", true)
			erase.Run = func(context.Context, core.Caller, json.RawMessage) (any, error) {
				made <- struct{}{}
				return struct{}{}, nil
			}
			h.Add(erase)
			alice, admin := person("alice", core.RoleAdmin), person("boss", core.RoleAdmin)
			alice.View = "v"
			done := make(chan error, 1)
			go func() { done <- h.run(t, alice, c.tool, `{}`) }()
			id := h.pendingID(t, admin)
			c.change(t, h)
			if _, err := h.approvals.Decide(t.Context(), admin, id, core.Decision{Approve: true}); err != nil {
				t.Fatal(err)
			}
			err, _ := testkit.Receive(t, "the call", done)
			if calls := len(made) + len(h.apps.Calls()); c.want == "" && (err != nil || calls != 1) || c.want != "" && (core.CodeOf(err) != c.want || calls != 0) {
				t.Errorf("%v, %d calls, want %q", err, calls, c.want)
			}
		})
	}
}

func TestAToolThatChangedWhileItsCallWaitedIsNotCalled(t *testing.T) {
	h := newHeld(t, 10*time.Second)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	done := make(chan error, 1)
	go func() { done <- h.run(t, alice, "files__delete", `{}`) }()
	id := h.pendingID(t, admin)
	h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{Tools: []core.Tool{tool("files", "delete", `{"name":"delete","description":"other"}`)}})
	if _, err := h.approvals.Decide(t.Context(), admin, id, core.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the call", done); core.CodeOf(err) != core.CodeApprovalRefused || len(h.apps.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(h.apps.Calls()))
	}
}
