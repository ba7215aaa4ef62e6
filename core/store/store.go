package store

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// Options say where the state is.
type Options struct {
	Path   string // the SQLite file, usually <home>/ropewalk.db; made with mode 0600
	Logger hclog.Logger
}

// Store is the durable state. It is safe for concurrent use.
type Store struct{}

// Open opens the state, makes it when it is not there, and brings its schema up to date.
func Open(ctx context.Context, o Options) (*Store, error) { panic("unfinished") }

// Close lets go of the state.
func (s *Store) Close() error { panic("unfinished") }

// PutInstallation keeps an installed app, new or changed.
func (s *Store) PutInstallation(ctx context.Context, in core.Installation) error { panic("unfinished") }

// DeleteInstallation forgets an installed app. core.CodeNotFound when there is none.
func (s *Store) DeleteInstallation(ctx context.Context, workspace, name string) error {
	panic("unfinished")
}

// Installations returns every installed app of every workspace, by workspace and name.
func (s *Store) Installations(ctx context.Context) ([]core.Installation, error) { panic("unfinished") }

// EnsureDefaultWorkspace makes the default workspace and the owner if they are not there.
func (s *Store) EnsureDefaultWorkspace(ctx context.Context) (core.Workspace, error) {
	panic("unfinished")
}

// Provision returns the user behind an identity. At first sight it makes the user and a personal
// workspace; later it brings email, name and role up to date.
func (s *Store) Provision(ctx context.Context, id core.Identity) (core.User, error) {
	panic("unfinished")
}

// Workspaces returns a user's workspaces with the user's role in each: the default workspace
// first, then the personal one, then the others by name.
func (s *Store) Workspaces(ctx context.Context, userID string) ([]core.Workspace, error) {
	panic("unfinished")
}

// Member returns a user's role in a workspace; core.CodeWorkspaceDenied when there is none.
func (s *Store) Member(ctx context.Context, userID, workspace string) (core.Role, error) {
	panic("unfinished")
}

// PutMember adds a user to a workspace or changes the role there.
func (s *Store) PutMember(ctx context.Context, workspace, userID string, role core.Role) error {
	panic("unfinished")
}

// DeleteMember takes a user out of a workspace. Taking out one who is not in it is not an error.
func (s *Store) DeleteMember(ctx context.Context, workspace, userID string) error {
	panic("unfinished")
}
