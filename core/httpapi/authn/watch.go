package authn

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// provenLife is how long a standing stream goes on whose token came with a proof of possession. Whether such a token
// has expired cannot be checked again; its client opens the stream anew.
const provenLife = 5 * time.Minute

// Watch returns a context for what goes on for a caller after the request was admitted. It ends when the
// credentials, the membership or a role of the caller is gone: at once when that is made known, and for a standing
// stream also after Recheck at the latest, as for a token that has expired. stop releases what it holds. While it
// cannot be determined whether the caller is still admitted, the context goes on.
func (a *Authenticator) Watch(ctx context.Context, cred Credentials, caller core.Caller, standing bool) (watched context.Context, stop func()) {
	watched, end := context.WithCancel(ctx)
	changes, unwatch := a.changesOf(caller.User.ID)
	go func() {
		defer end()
		defer unwatch()
		var tick <-chan time.Time
		if standing {
			ticker := time.NewTicker(a.Recheck)
			defer ticker.Stop()
			tick = ticker.C
		}
		if standing && cred.proven {
			defer time.AfterFunc(provenLife, end).Stop()
		}
		held := roles{caller.User.OrgRole, caller.Workspace.Role}
		if cred.proven {
			held = roles{} // those that only the token gives are not known without its request
		}
		for {
			select {
			case <-watched.Done():
				return
			case <-changes:
			case <-tick:
			}
			now, err := a.current(watched, cred, caller)
			switch {
			case err != nil && isRefusal(err), err == nil && held.above(now):
				return
			case err == nil && held == roles{}:
				held = now
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

// roles are what a caller may do in the organization and in its workspace.
type roles struct{ organization, workspace core.Role }

// above reports whether a role has rights that now has no longer.
func (r roles) above(now roles) bool {
	return above(r.organization, now.organization) || above(r.workspace, now.workspace)
}

func above(before, now core.Role) bool {
	return before.Admin() && !now.Admin() || before == core.RoleOwner && now != core.RoleOwner
}

// current returns the roles that a caller has now. A token that came with a proof of possession (RFC 9449, RFC 8705)
// cannot be verified again without its request: of it counts what was revoked.
func (a *Authenticator) current(ctx context.Context, cred Credentials, caller core.Caller) (roles, error) {
	cred.Workspace = caller.Workspace.ID
	ask := func() (core.Caller, error) { return a.Caller(ctx, cred) }
	if cred.proven && caller.Token != "" {
		ask = func() (core.Caller, error) { return a.Access.Current(ctx, caller) }
	}
	now, err := ask()
	return roles{now.User.OrgRole, now.Workspace.Role}, err
}

// isRefusal reports whether an error says that a caller has no access, rather than that this cannot be determined.
func isRefusal(err error) bool {
	code := core.CodeOf(err)
	return code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied
}
