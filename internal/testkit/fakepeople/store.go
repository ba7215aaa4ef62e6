// Package fakepeople stores the users, workspaces and API keys of a server in memory, for tests.
package fakepeople

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// Store is a people.Store with one workspace, ws_a. It records changes.
type Store struct {
	mu    sync.Mutex
	users []core.User
	keys  []core.APIKey
	done  []string
}

// New returns a Store with the given users.
func New(users ...core.User) *Store { return &Store{users: users} }

// Done returns the recorded changes, one line each.
func (s *Store) Done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

func (s *Store) note(what ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, strings.Join(what, " "))
	return nil
}

// Users implements people.Store.
func (s *Store) Users(context.Context) ([]core.KnownUser, error) {
	all := make([]core.KnownUser, len(s.users))
	for i, u := range s.users {
		all[i] = core.KnownUser{User: u, Identities: []core.Subject{{Issuer: "https://idp.example", Subject: u.ID}}}
	}
	return all, nil
}

// Forgotten implements people.Providers: every issuer is configured.
func (s *Store) Forgotten(context.Context, []string) bool { return false }

// MergeUsers implements people.Store.
func (s *Store) MergeUsers(_ context.Context, from, into string) error {
	return s.note("merge", from, into)
}

// User implements people.Store.
func (s *Store) User(_ context.Context, id string) (core.User, error) {
	for _, u := range s.users {
		if u.ID == id {
			return u, nil
		}
	}
	return core.User{}, core.Errorf(core.CodeNotFound, "there is no user %s", id)
}

// SetOrgRole implements people.Store.
func (s *Store) SetOrgRole(_ context.Context, id string, role core.Role) error {
	return s.note("role", id, string(role))
}

// DeleteUser implements people.Store.
func (s *Store) DeleteUser(_ context.Context, id string) error { return s.note("delete", id) }

// AllWorkspaces implements people.Store.
func (s *Store) AllWorkspaces(context.Context) ([]core.WorkspaceInfo, error) {
	return []core.WorkspaceInfo{{ID: "ws_a", Name: "A", Members: 1}}, nil
}

// CreateWorkspace implements people.Store.
func (s *Store) CreateWorkspace(_ context.Context, name, admin string) (core.Workspace, error) {
	return core.Workspace{ID: "ws_new", Name: name, Role: core.RoleAdmin}, s.note("create", name, admin)
}

// RenameWorkspace implements people.Store.
func (s *Store) RenameWorkspace(_ context.Context, id, name string) error {
	return s.note("rename", id, name)
}

// DeleteWorkspace implements people.Store.
func (s *Store) DeleteWorkspace(_ context.Context, id string) error { return s.note("drop", id) }

// Members implements people.Store.
func (s *Store) Members(context.Context, string) ([]core.Member, error) {
	return []core.Member{{User: s.users[0], Role: core.RoleAdmin}}, nil
}

// PutMember implements people.Store.
func (s *Store) PutMember(_ context.Context, workspace, id string, role core.Role) error {
	return s.note("put", workspace, id, string(role))
}

// DeleteMember implements people.Store.
func (s *Store) DeleteMember(_ context.Context, workspace, id string) error {
	return s.note("remove", workspace, id)
}

// CreateAPIKey implements people.Store.
func (s *Store) CreateAPIKey(_ context.Context, k core.APIKey, _ string) (core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.ID = fmt.Sprintf("key_%d", len(s.keys))
	s.keys = append(s.keys, k)
	return k, nil
}

// APIKeys implements people.Store.
func (s *Store) APIKeys(context.Context, string, string) ([]core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys), nil
}

// DeleteAPIKey implements people.Store.
func (s *Store) DeleteAPIKey(_ context.Context, _, _, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.keys, func(k core.APIKey) bool { return k.ID == id })
	if i < 0 {
		return core.Errorf(core.CodeNotFound, "no such key")
	}
	s.keys = slices.Delete(s.keys, i, i+1)
	return nil
}
