package authn

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Watch returns a context for what goes on for a caller after the request was admitted. It ends when the
// credentials, the membership or a role of the caller is gone: at once when that is made known, and where every is
// not 0 also within that time, as for a token that has expired. stop releases what it holds. While it cannot be
// determined whether the caller is still admitted, the context goes on.
func (a *Authenticator) Watch(ctx context.Context, cred Credentials, caller core.Caller, every time.Duration) (watched context.Context, stop func()) {
	watched, end := context.WithCancel(ctx)
	changes, unwatch := a.changesOf(caller.User.ID)
	go func() {
		defer end()
		defer unwatch()
		var tick <-chan time.Time
		if every > 0 {
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			tick = ticker.C
		}
		for {
			select {
			case <-watched.Done():
				return
			case <-changes:
			case <-tick:
			}
			if a.Revoked(watched, cred, caller) {
				return
			}
		}
	}()
	return watched, end
}

// changesOf returns a channel that receives now, and after the rights of a user may have changed.
func (a *Authenticator) changesOf(user string) (changes <-chan struct{}, stop func()) {
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // what changed since the request was admitted
	stop = a.Access.WatchRevocations(func(of string) {
		if of != user && of != "" {
			return
		}
		select {
		case changed <- struct{}{}:
		default: // one check covers both
		}
	})
	return changed, stop
}

// Revoked reports whether the credentials no longer allow what the caller was admitted to in its workspace. It returns
// false when that cannot be determined. A token that came with a proof of possession (RFC 9449, RFC 8705) cannot be
// verified again without its request: of it counts what was revoked.
func (a *Authenticator) Revoked(ctx context.Context, cred Credentials, caller core.Caller) bool {
	if cred.proven && caller.Token != "" {
		return refused(a.Access.Valid(ctx, caller))
	}
	cred.Workspace = caller.Workspace.ID
	now, err := a.Caller(ctx, cred)
	if err != nil {
		return refused(err)
	}
	return lower(now.User.OrgRole, caller.User.OrgRole) || lower(now.Workspace.Role, caller.Workspace.Role)
}

// refused reports whether an error says that a caller has no access, rather than that this cannot be determined.
func refused(err error) bool {
	code := core.CodeOf(err)
	return err != nil && (code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied)
}

// lower reports whether a role has rights no longer that another one has.
func lower(now, before core.Role) bool {
	return before.Admin() && !now.Admin() || before == core.RoleOwner && now != core.RoleOwner
}
