package authn

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropewalk/ropewalk/core"
)

// provenLife limits a long-lived stream whose token came with a proof of possession. Such a token's expiry cannot be
// checked again, so the client has to reopen the stream.
const provenLife = 5 * time.Minute

// A watch may check its caller checkBurst times in a row, and then at most once per checkPause. Each check stores the
// groups in the watch's own token. Without this limit, two watches of one person whose tokens contain different groups
// would trigger each other forever.
const (
	checkBurst = 5
	checkPause = time.Second
)

// Watch returns a context for work that continues for a caller after the request was admitted. The context ends when
// the caller loses their credentials, their membership or a role, as soon as the loss is announced. A standing stream
// is also checked periodically (Recheck), which detects expired tokens too. The context stays open while the caller's
// rights cannot be determined. When it ends, its cause is the error from Check, which says what the caller has lost.
// stop releases the context's resources.
//
// follow is nil for a run. For a standing stream, it is called after each check with the caller and their current
// rights.
func (a *Authenticator) Watch(ctx context.Context, cred Credentials, caller core.Caller, follow func(core.Caller)) (watched context.Context, stop func()) {
	watched, end := context.WithCancelCause(ctx)
	changes := make(chan struct{}, 1)
	changes <- struct{}{} // check immediately: something may have changed since the request was admitted
	unwatch := a.notify(changes, caller.User.ID)
	go func() {
		defer end(nil)
		defer unwatch()
		var tick <-chan time.Time
		if follow != nil {
			ticker := time.NewTicker(a.Recheck)
			defer ticker.Stop()
			tick = ticker.C
		}
		if follow != nil && cred.proven {
			defer time.AfterFunc(provenLife, func() { end(nil) }).Stop()
		}
		held, pace := heldBy(cred, caller), rate.NewLimiter(rate.Every(checkPause), checkBurst)
		for {
			select {
			case <-watched.Done():
				return
			case <-changes:
			case <-tick:
			}
			if pace.Wait(watched) != nil {
				return
			}
			now, err := a.current(watched, cred, caller)
			if lost := lostBy(caller, held, now, err); lost != nil {
				end(lost)
				return
			}
			if err != nil {
				continue
			}
			if cred.proven && held.User.OrgRole == "" {
				held = now
			}
			if follow != nil {
				follow(now)
			}
		}
	}()
	return watched, func() { end(nil) }
}

// WatchCall is like Watch, for one call that has just been admitted. It checks only when a change is announced. The call
// continues if its token merely expires.
func (a *Authenticator) WatchCall(ctx context.Context, cred Credentials, caller core.Caller) (watched context.Context, stop func()) {
	watched, end := context.WithCancelCause(ctx)
	changes := make(chan struct{}, 1)
	unwatch := a.notify(changes, caller.User.ID)
	go func() {
		defer unwatch()
		pace := rate.NewLimiter(rate.Every(checkPause), checkBurst)
		for {
			select {
			case <-watched.Done():
				return
			case <-changes:
			}
			if pace.Wait(watched) != nil {
				return
			}
			if _, lost := a.Check(watched, cred, caller); lost != nil {
				end(lost)
				return
			}
		}
	}()
	return watched, func() { end(nil) }
}

// Check reads a caller's rights again after the request was admitted. It returns the caller with their current rights,
// or an error that says what the caller has lost: the login, the API key, the membership or a role. A token that has
// merely expired is not treated as lost. If the rights cannot be determined, the caller is returned unchanged.
func (a *Authenticator) Check(ctx context.Context, cred Credentials, caller core.Caller) (core.Caller, error) {
	now, err := a.current(ctx, cred, caller)
	if core.CodeOf(err) == core.CodeUnauthenticated && caller.Token != "" && !cred.proven {
		if still, revoked := a.Access.Current(ctx, caller); revoked == nil {
			return still, nil
		}
	}
	if lost := lostBy(caller, heldBy(cred, caller), now, err); lost != nil {
		return caller, lost
	}
	if err != nil {
		return caller, nil //nolint:nilerr // cannot be determined at the moment
	}
	return now, nil
}

// heldBy returns a caller with the roles that later checks compare against. If the token came with a proof, the roles
// are empty: roles that only the token grants cannot be read again without the original request.
func heldBy(cred Credentials, caller core.Caller) core.Caller {
	if cred.proven {
		caller.User.OrgRole, caller.Workspace.Role = "", ""
	}
	return caller
}

// lostBy returns an error that says what a caller has lost, given the caller's current roles or the error from reading
// them. It returns nil if nothing is lost.
func lostBy(caller, held, now core.Caller, err error) error {
	switch {
	case err != nil && !isRefusal(err), err == nil && !held.Outranks(now):
		return nil
	case err == nil:
		return core.Errorf(core.CodeForbidden, "The run ended because your role changed. Send the message again to continue with your new rights.")
	case core.CodeOf(err) == core.CodeWorkspaceDenied:
		return core.Errorf(core.CodeWorkspaceDenied, "The run ended because you are no longer a member of the workspace.")
	case caller.Issuer == core.IssuerKey:
		return core.Errorf(core.CodeUnauthenticated, "The run ended because its API key was revoked or has expired.")
	default:
		return core.Errorf(core.CodeUnauthenticated, "The run ended because your login is no longer valid. Log in and send the message again.")
	}
}

// notify sends to changes whenever the rights of a user may have changed.
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

// current returns a caller with their current rights. A token that came with a proof of possession (RFC 9449, RFC 8705)
// cannot be verified again without its request, so only its revocation is checked. A token can outlive its user.
// Verifying it after the user was deleted creates a new user, who is a different caller.
func (a *Authenticator) current(ctx context.Context, cred Credentials, caller core.Caller) (core.Caller, error) {
	if cred.proven && caller.Token != "" {
		return a.Access.Current(ctx, caller)
	}
	cred.Workspace = caller.Workspace.ID
	now, err := a.Caller(ctx, cred)
	if err == nil && now.User.ID != caller.User.ID {
		err = core.Errorf(core.CodeUnauthenticated, "the user was deleted")
	}
	return now, err
}

// isRefusal reports whether an error means that a caller has no access, rather than that their access cannot be
// determined.
func isRefusal(err error) bool {
	code := core.CodeOf(err)
	return code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied
}
