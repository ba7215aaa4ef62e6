package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestEveryMembershipChangeIsAnnouncedWithTheUserItConcerns(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		ann := core.Identity{Issuer: "https://idp", Subject: "ann", User: core.User{OrgRole: core.RoleMember}}
		ann.User = provision(t, s, ann)
		id := ann.User.ID
		var announced []string
		s.WatchMembers(func(user string) { announced = append(announced, user) })
		var workspace, key string
		for _, c := range []struct {
			what string
			want []string // the users, "" for all
			do   func() error
		}{
			{"a workspace is created", []string{id}, func() error {
				w, err := s.CreateWorkspace(ctx, "Team", id)
				workspace = w.ID
				return err
			}},
			{"it is renamed", []string{""}, func() error { return s.RenameWorkspace(ctx, workspace, "Crew") }},
			{"a member is added", []string{"usr_owner"}, func() error { return s.PutMember(ctx, workspace, "usr_owner", core.RoleMember) }},
			{"a member is removed", []string{"usr_owner"}, func() error { return s.DeleteMember(ctx, workspace, "usr_owner") }},
			{"a role is given", []string{id}, func() error { return s.SetOrgRole(ctx, id, core.RoleAdmin) }},
			{"a user joins", []string{id}, func() error { _, err := s.JoinOnce(ctx, id, core.DefaultWorkspaceID, core.RoleMember); return err }},
			{"the same user does not join again", nil, func() error { _, err := s.JoinOnce(ctx, id, core.DefaultWorkspaceID, core.RoleMember); return err }},
			{"the first admin already exists", nil, func() error { _, err := s.ClaimFirstAdmin(ctx, id); return err }},
			{"a key is created, which no cache can hold yet", nil, func() error {
				k, err := s.CreateAPIKey(ctx, core.APIKey{Name: "k", User: ann.User, Workspace: workspace, Role: core.RoleMember}, "hash")
				key = k.ID
				return err
			}},
			{"a key is revoked", []string{id}, func() error { return s.DeleteAPIKey(ctx, workspace, "", key) }},
			{"a login begins", nil, func() error {
				return s.PutCookie(ctx, core.Cookie{Hash: "login", Identity: ann, ExpiresAt: time.Now().Add(time.Hour)})
			}},
			{"a login ends", []string{id}, func() error { return s.DeleteCookie(ctx, "login") }},
			{"a subject is revoked", []string{id}, func() error { return s.Revoke(ctx, core.Revocation{Issuer: "https://idp", Subject: "ann"}) }},
			{"a workspace is deleted", []string{""}, func() error { return s.DeleteWorkspace(ctx, workspace) }},
			{"a user is deleted", []string{id}, func() error { return s.DeleteUser(ctx, id) }},
		} {
			announced = nil
			if err := c.do(); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			if got := fmt.Sprintf("%q", announced); got != fmt.Sprintf("%q", c.want) {
				t.Errorf("%s: announced %s, want %q", c.what, got, c.want)
			}
		}
		for what, err := range map[string]error{
			"an unknown user": s.SetOrgRole(ctx, "usr_nobody", core.RoleAdmin), "an unknown key": s.DeleteAPIKey(ctx, core.DefaultWorkspaceID, "", "key_x"),
			"an ended context": s.RenameWorkspace(ended(ctx), core.DefaultWorkspaceID, "X"),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		if len(announced) != 1 { // the deletion of the user
			t.Errorf("a change that failed was announced: %q", announced)
		}
	})
}

// ended returns a context that has already ended.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
