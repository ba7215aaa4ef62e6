package authn

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// provenLife limits a long-lived stream whose token came with a proof of possession. Such a token's expiry cannot be
// checked again, so the client has to reopen the stream.
const provenLife = 5 * time.Minute

// Watch returns a context for work that continues for a caller after the request was admitted. It ends when the caller
// loses the credentials, the membership or a role: immediately when the loss is announced, and for a standing stream
// also at the next periodic check (Recheck), which notices expired tokens too. While it cannot be determined whether
// the caller is still admitted, the context stays open. Its cause is the error that Check returns. stop releases the
// context's resources.
func (a *Authenticator) Watch(ctx context.Context, cred Credentials, caller core.Caller, standing bool) (watched context.Context, stop func()) {
	watched, end := context.WithCancelCause(ctx)
	changes := make(chan struct{}, 1)
	changes <- struct{}{} // for changes since the request was admitted
	unwatch := a.notify(changes, caller.User.ID)
	go func() {
		defer end(nil)
		defer unwatch()
		var tick <-chan time.Time
		if standing {
			ticker := time.NewTicker(a.Recheck)
			defer ticker.Stop()
			tick = ticker.C
		}
		if standing && cred.proven {
			defer time.AfterFunc(provenLife, func() { end(nil) }).Stop()
		}
		held := roles{caller.User.OrgRole, caller.Workspace.Role}
		if cred.proven {
			held = roles{} // roles that only the token gives cannot be read without its request
		}
		for {
			select {
			case <-watched.Done():
				return
			case <-changes:
			case <-tick:
			}
			now, err := a.current(watched, cred, caller)
			if lost := lostBy(caller, held, now, err); lost != nil {
				end(lost)
				return
			}
			if err == nil && held == (roles{}) {
				held = now
			}
		}
	}()
	return watched, func() { end(nil) }
}

// WatchCall is Watch for one call that has just been admitted. It checks nothing unless something changes, and the call
// continues if its token merely expires.
func (a *Authenticator) WatchCall(ctx context.Context, cred Credentials, caller core.Caller) (watched context.Context, stop func()) {
	watched, end := context.WithCancelCause(ctx)
	changes := make(chan struct{}, 1)
	unwatch := a.notify(changes, caller.User.ID)
	go func() {
		defer unwatch()
		for {
			select {
			case <-watched.Done():
				return
			case <-changes:
			}
			if lost := a.Check(watched, cred, caller); lost != nil {
				end(lost)
				return
			}
		}
	}()
	return watched, func() { end(nil) }
}

// Check reads a caller's rights again after the request was admitted. It returns an error that says what the caller has
// lost: the login, the API key, the membership or a role. A token that has merely expired since then does not count as
// lost, and neither does anything that cannot be determined at the moment.
func (a *Authenticator) Check(ctx context.Context, cred Credentials, caller core.Caller) error {
	now, err := a.current(ctx, cred, caller)
	held := roles{caller.User.OrgRole, caller.Workspace.Role}
	if cred.proven {
		held = roles{}
	}
	if core.CodeOf(err) == core.CodeUnauthenticated && caller.Token != "" && !cred.proven {
		if _, revoked := a.Access.Current(ctx, caller); revoked == nil {
			return nil
		}
	}
	return lostBy(caller, held, now, err)
}

// lostBy returns the error for what a caller has lost, given the current roles or the error of reading them. It returns
// nil when nothing is lost.
func lostBy(caller core.Caller, held, now roles, err error) error {
	switch {
	case err != nil && !isRefusal(err), err == nil && !held.above(now):
		return nil
	case err == nil:
		return core.Errorf(core.CodeForbidden, "The run ended because your role changed. Send the message again to continue with your new rights.")
	case core.CodeOf(err) == core.CodeWorkspaceDenied:
		return core.Errorf(core.CodeWorkspaceDenied, "The run ended because you are no longer a member of the workspace.")
	case caller.Issuer == core.IssuerKey:
		return core.Errorf(core.CodeUnauthenticated, "The run ended because its API key was revoked or has expired.")
	default:
		return core.Errorf(core.CodeUnauthenticated, "The run ended because the login ended. Log in and send the message again.")
	}
}

// notify sends to changes when the rights of a user may have changed.
func (a *Authenticator) notify(changes chan<- struct{}, user string) (stop func()) {
	return a.Access.WatchRevocations(func(of string) {
		if of != user && of != "" {
			return
		}
		select {
		case changes <- struct{}{}:
		default: // one check covers both
		}
	})
}

// roles holds a caller's roles in the organization and in the workspace.
type roles struct{ organization, workspace core.Role }

// above reports whether r has rights that now lacks.
func (r roles) above(now roles) bool {
	return above(r.organization, now.organization) || above(r.workspace, now.workspace)
}

func above(before, now core.Role) bool {
	return before.Admin() && !now.Admin() || before == core.RoleOwner && now != core.RoleOwner
}

// current returns the roles that a caller has now. A token that came with a proof of possession (RFC 9449, RFC 8705)
// cannot be verified again without its request, so only its revocation is checked.
func (a *Authenticator) current(ctx context.Context, cred Credentials, caller core.Caller) (roles, error) {
	cred.Workspace = caller.Workspace.ID
	ask := func() (core.Caller, error) { return a.Caller(ctx, cred) }
	if cred.proven && caller.Token != "" {
		ask = func() (core.Caller, error) { return a.Access.Current(ctx, caller) }
	}
	now, err := ask()
	return roles{now.User.OrgRole, now.Workspace.Role}, err
}

// isRefusal reports whether an error says that a caller has no access, as opposed to access that cannot be determined.
func isRefusal(err error) bool {
	code := core.CodeOf(err)
	return code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied
}
