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
// cannot be determined whether the caller is still admitted, the context goes on. Its cause is the error that Check
// returns.
func (a *Authenticator) Watch(ctx context.Context, cred Credentials, caller core.Caller, standing bool) (watched context.Context, stop func()) {
	watched, end := context.WithCancelCause(ctx)
	changes := make(chan struct{}, 1)
	changes <- struct{}{} // what changed since the request was admitted
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

// WatchCall is Watch for one call, which was admitted a moment ago: it asks nothing as long as nothing changes, and goes on
// when its token has only expired.
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

// Check reads the rights of a caller anew, after its request was admitted. It returns an error that says what is gone: the
// login, the API key, the membership or a role. A token that has only expired since then is not gone, and neither is what
// cannot be determined at the moment.
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

// lostBy is the error for what a caller has lost, by its roles of now or the error of asking for them; nil for nothing.
func lostBy(caller core.Caller, held, now roles, err error) error {
	switch {
	case err != nil && !isRefusal(err), err == nil && !held.above(now):
		return nil
	case err == nil:
		return core.Errorf(core.CodeForbidden, "The run ended because you have another role now. Send the message again to go on with the rights that you have.")
	case core.CodeOf(err) == core.CodeWorkspaceDenied:
		return core.Errorf(core.CodeWorkspaceDenied, "The run ended because you are not a member of the workspace any more.")
	case caller.Issuer == core.IssuerKey:
		return core.Errorf(core.CodeUnauthenticated, "The run ended because its API key was revoked or has expired.")
	default:
		return core.Errorf(core.CodeUnauthenticated, "The run ended because the login ended. Log in and send the message again.")
	}
}

// notify sends to changes after the rights of a user may have changed.
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
