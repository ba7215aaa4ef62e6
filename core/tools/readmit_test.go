package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// rights is a tools.Access whose callers lose their rights.
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
		{"the admin is now a member", "system__erase", becomes(func(c *core.Caller) { c.User.OrgRole = core.RoleMember }, nil), core.CodeForbidden},
		{"the membership has ended", "mail__post", becomes(gone, core.Errorf(core.CodeWorkspaceDenied, "not a member")), core.CodeWorkspaceDenied},
		{"the key was revoked", "system__erase", becomes(gone, core.Errorf(core.CodeUnauthenticated, "no such key")), core.CodeUnauthenticated},
		{"the rights cannot be read", "mail__post", becomes(gone, core.Errorf(core.CodeUnavailable, "no database")), core.CodeUnavailable},
		{"the view hides the tool", "mail__post", narrow, core.CodeToolNotFound},
		{"the view hides the server's tool", "system__erase", narrow, core.CodeToolNotFound},
		{"the app was removed", "mail__post", func(_ *testing.T, h *held) { h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{}) }, core.CodeToolNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHeld(t, time.Minute)
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

func TestACallThatWokeItsAppIsCheckedAgainBeforeItIsSent(t *testing.T) {
	offers := func(definition string) func(*testing.T, *held) {
		return func(_ *testing.T, h *held) {
			delete(h.apps.tools, core.DefaultWorkspaceID)
			h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{Tools: []core.Tool{tool("files", "read", definition)}})
		}
	}
	leaves := func(_ *testing.T, h *held) {
		h.access.now = func(core.Caller) (core.Caller, error) {
			return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "not a member")
		}
	}
	hides := func(t *testing.T, h *held) {
		t.Helper()
		if _, err := h.views.Set(t.Context(), core.DefaultWorkspaceID, core.View{Name: "v", Roles: []core.Role{core.RoleMember}, Default: core.ViewDenies}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *held)
		want   core.Code // "" if the call is sent
	}{
		"nothing changes":                       {func(*testing.T, *held) {}, ""},
		"the tool's definition changes":         {offers(`{"name":"read","description":"other"}`), ""},
		"the tool's calls now need an approval": {offers(`{"name":"read","annotations":{"destructiveHint":true}}`), core.CodeConflict},
		"the app no longer has the tool":        {func(_ *testing.T, h *held) { h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{}) }, core.CodeToolNotFound},
		"the membership has ended":              {leaves, core.CodeWorkspaceDenied},
		"a view hides the tool":                 {hides, core.CodeToolNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t, time.Second)
			offers(`{"name":"read"}`)(t, h)
			h.apps.waking = func() { c.change(t, h) }
			err := h.run(t, person("alice", core.RoleMember), "files__read", `{}`)
			if calls := len(h.apps.Calls()); c.want == "" && (err != nil || calls != 1) || c.want != "" && (core.CodeOf(err) != c.want || calls != 0) {
				t.Errorf("%v, %d calls, want %q", err, calls, c.want)
			}
		})
	}
}

func TestARequestThatWokeItsAppIsCheckedAgainBeforeItIsSent(t *testing.T) {
	offers := func(offer core.Offer) func(*testing.T, *held) {
		return func(_ *testing.T, h *held) {
			delete(h.apps.tools, core.DefaultWorkspaceID)
			h.apps.SetOffer(core.DefaultWorkspaceID, &offer)
		}
	}
	help := core.Offer{
		Prompts:   []core.Prompt{{Server: "files", Name: "help", Raw: json.RawMessage(`{"name":"help"}`)}},
		Resources: []core.Resource{{Server: "files", URI: "f://a", Raw: json.RawMessage(`{"uri":"f://a"}`)}},
	}
	moved := core.Offer{Prompts: []core.Prompt{{Server: "other", Name: "p", Raw: json.RawMessage(`{"name":"p"}`)}}, Resources: []core.Resource{{Server: "other", URI: "f://a", Raw: json.RawMessage(`{"uri":"f://a"}`)}}}
	leaves := func(_ *testing.T, h *held) {
		h.access.now = func(core.Caller) (core.Caller, error) {
			return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "not a member")
		}
	}
	hides := func(t *testing.T, h *held) {
		t.Helper()
		if _, err := h.views.Set(t.Context(), core.DefaultWorkspaceID, core.View{Name: "v", Roles: []core.Role{core.RoleMember}, Default: core.ViewDenies}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change           func(*testing.T, *held)
		prompt, resource core.Code // "" if the request is sent
	}{
		"nothing changes":                   {func(*testing.T, *held) {}, "", ""},
		"the membership has ended":          {leaves, core.CodeWorkspaceDenied, core.CodeWorkspaceDenied},
		"a view hides the app":              {hides, core.CodeNotFound, core.CodeResourceNotFound},
		"the app no longer offers anything": {offers(core.Offer{}), core.CodeNotFound, core.CodeResourceNotFound},
		"another app now offers it":         {offers(moved), core.CodeNotFound, core.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t, time.Second)
			me := person("alice", core.RoleMember)
			ask := func(kind string, want core.Code, ask func(context.Context, core.Caller, tools.Request) (json.RawMessage, error), params string) {
				offers(help)(t, h)
				h.apps.waking = func() { c.change(t, h) }
				before := len(h.apps.Calls())
				_, err := ask(t.Context(), me, tools.Request{Params: json.RawMessage(params)})
				if calls := len(h.apps.Calls()) - before; want == "" && (err != nil || calls != 1) || want != "" && (core.CodeOf(err) != want || calls != 0) {
					t.Errorf("a %s: %v, %d calls, want %q", kind, err, calls, want)
				}
			}
			ask("prompt", c.prompt, h.GetPrompt, `{"name":"files__help"}`)
			h = newHeld(t, time.Second)
			ask("resource", c.resource, h.ReadResource, `{"uri":"f://a"}`)
		})
	}
}

func TestAToolThatChangedWhileItsCallWaitedIsNotCalled(t *testing.T) {
	h := newHeld(t, time.Minute)
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

func TestACallWithArgumentsThatAreTooLongToReadDoesNotWait(t *testing.T) {
	h := newHeld(t, time.Millisecond)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	large := `{"text":"` + strings.Repeat("a", 256<<10) + `"}`
	err := h.run(t, alice, "files__delete", large)
	if core.CodeOf(err) != core.CodeInvalidInput || !strings.Contains(err.Error(), "at most 256 KiB") {
		t.Errorf("the call: %v", err)
	}
	if page, err := h.approvals.List(t.Context(), admin, core.ApprovalQuery{}); err != nil || len(page.Approvals) != 0 {
		t.Errorf("waiting calls: %v %v", page, err)
	}
	if err := h.run(t, alice, "files__read", large); err != nil {
		t.Errorf("a tool that needs no approval: %v", err)
	}
}
