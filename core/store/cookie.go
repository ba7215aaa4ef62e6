package store

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Cookie is one login. The token itself is never stored, only its hash.
type Cookie struct {
	Hash      string // hex sha256 of the token
	Identity  core.Identity
	KeyPrint  string // fingerprint of the API key it was bought with; "" for a provider's login
	ExpiresAt time.Time
}

// PutCookie keeps a login. Its identity must have been provisioned.
func (s *Store) PutCookie(ctx context.Context, c Cookie) error { panic("unfinished") }

// Cookie returns a login that has not expired, with its user as of now; core.CodeNotFound else.
func (s *Store) Cookie(ctx context.Context, hash string) (Cookie, error) { panic("unfinished") }

// DeleteCookie ends a login. Ending one that is not there is not an error.
func (s *Store) DeleteCookie(ctx context.Context, hash string) error { panic("unfinished") }
