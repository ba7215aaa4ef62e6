package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	recheckEarly = 5                // a login is rechecked when 1/5 of the interval is left, because streams are authenticated only every 30 s
	recheckPause = 20 * time.Second // between two attempts to check a login, here and on peer servers
	awaitTimeout = 5 * time.Second  // how long to wait for a peer server's check
	awaitPause   = 100 * time.Millisecond
	recheckGrace = 3 // a login that cannot be checked is accepted for this many intervals, then refused until it can be checked
)

// rechecks tracks the checks of logins at their providers.
type rechecks struct {
	pending singleflight.Group
	next    *lru.Cache[fingerprint, time.Time] // no attempt before this time
}

func newRechecks() *rechecks {
	next, _ := lru.New[fingerprint, time.Time](maxVerified) // the only error is a size below 1
	return &rechecks{next: next}
}

// recheck asks a login's provider again once its last answer is almost one interval old. The error is
// core.CodeUnauthenticated if the provider no longer vouches for the login, which ends it, and core.CodeUnavailable if
// the provider has been unreachable for too long.
func (a *Access) recheck(ctx context.Context, p *trusted, token string, c core.Cookie) error {
	interval := p.Recheck
	sessions, can := p.Adapter.(auth.Sessions)
	age := time.Since(c.CheckedAt)
	if interval <= 0 || !can || c.Renewal == "" || age < interval-interval/recheckEarly {
		return nil
	}
	hash := fingerprintOf(token)
	if until, ok := a.rechecks.next.Get(hash); ok && time.Now().Before(until) {
		return overdue(age, interval, errors.New("the identity provider did not confirm the login"))
	}
	answer := a.rechecks.pending.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		return nil, a.checkLogin(ctx, sessions, p, token, c)
	})
	select {
	case r := <-answer:
		if r.Err == nil || core.CodeOf(r.Err) == core.CodeUnauthenticated {
			return r.Err
		}
		return overdue(age, interval, r.Err)
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// overdue returns the error for a login that could not be checked: nil unless its last check is too old.
func overdue(age, interval time.Duration, cause error) error {
	if age < recheckGrace*interval {
		return nil
	}
	return unavailable(cause)
}

// checkLogin asks the provider about a login and records the answer, unless a peer server is already doing so.
func (a *Access) checkLogin(ctx context.Context, sessions auth.Sessions, p *trusted, token string, c core.Cookie) error {
	hash := fingerprintOf(token)
	claimed, err := a.cookies.ClaimCheck(ctx, c, recheckPause)
	if err != nil {
		return err
	}
	if !claimed {
		return a.awaitCheck(ctx, p, c)
	}
	renewal, err := openRenewal(token, c.Renewal)
	if err != nil {
		return err
	}
	verified, err := guarded(func() (auth.Identity, error) {
		return sessions.CheckSession(ctx, auth.SessionCheck{Renewal: renewal, Subject: c.Identity.Subject})
	})
	if err == nil && (verified.Issuer != c.Identity.Issuer || verified.Subject != c.Identity.Subject) {
		err = fmt.Errorf("the login now has a different subject: %w", plugins.ErrUnauthenticated)
	}
	if err == nil && !verified.ExpiresAt.IsZero() {
		_, err = a.admit(ctx, p, verified)
	}
	switch {
	case errors.Is(err, plugins.ErrUnauthenticated):
		a.log.Info("login ended: the identity provider no longer confirms it", "provider", p.Name, "user", c.Identity.User.ID, "reason", err)
		if err := a.Logout(ctx, token); err != nil {
			return err
		}
		return unauthenticated()
	case errors.Is(err, plugins.ErrUnimplemented):
		verified.Renewal = "" // the adapter was replaced by one that cannot recheck logins
	case err != nil:
		a.rechecks.next.Add(hash, time.Now().Add(recheckPause))
		a.log.Warn("login not checked: the identity provider cannot be reached", "provider", p.Name, "error", err)
		return err
	}
	return a.recordCheck(ctx, token, c, verified)
}

// awaitCheck waits for a peer server to check a login, if the login cannot be used without the check.
func (a *Access) awaitCheck(ctx context.Context, p *trusted, c core.Cookie) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for overdue(time.Since(c.CheckedAt), p.Recheck, nil) != nil {
		select {
		case <-ctx.Done():
			return errors.New("another server is still checking the login with the identity provider")
		case <-time.After(awaitPause):
		}
		now, err := a.cookies.Cookie(ctx, c.Hash)
		switch {
		case core.CodeOf(err) == core.CodeNotFound:
			return unauthenticated()
		case err != nil:
			return err
		}
		c = now
	}
	return nil
}

// recordCheck stores that a login was confirmed.
func (a *Access) recordCheck(ctx context.Context, token string, c core.Cookie, verified auth.Identity) error {
	sealed, err := sealRenewal(token, verified.Renewal)
	if err != nil {
		return err
	}
	c.Renewal, c.CheckedAt = sealed, time.Now()
	if verified.SessionID != "" {
		c.Identity.Session = core.SessionHash(verified.Issuer, verified.SessionID)
	}
	return a.cookies.CookieChecked(ctx, c)
}
