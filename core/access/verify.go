package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	maxToken = 16 << 10 // bytes; a longer bearer is refused unread
	maxSwaps = 3        // how often a question is asked again because the adapter was swapped meanwhile
)

// verify says whose token it is. In the steady state the answer is remembered; else the adapter is
// asked, once for all who ask about one token at a time.
func (a *Access) verify(ctx context.Context, token string) (core.Identity, error) {
	if len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return core.Identity{}, unauthenticated()
	}
	hash := fingerprintOf(token)
	for range maxSwaps {
		g := a.gate.Load()
		if g.adapter == nil {
			return core.Identity{}, unauthenticated()
		}
		if good, ok := g.verified.Get(hash); ok && time.Now().Before(good.until) {
			return good.identity, nil
		}
		if until, ok := g.refused.Get(hash); ok && time.Now().Before(until) {
			return core.Identity{}, unauthenticated()
		}
		id, err := a.shared(ctx, g, hash, token)
		if a.gate.Load() == g {
			return id, err
		}
	}
	return core.Identity{}, unavailable(errors.New("the auth adapter was swapped again and again"))
}

// shared joins the question about this token that is under way, or asks it. A caller that leaves
// does not take the answer from the others.
func (a *Access) shared(ctx context.Context, g *gate, hash fingerprint, token string) (core.Identity, error) {
	since := g.change() // an answer that a change of users made old is nobody's any more
	answer := g.flights.DoChan(string(strconv.AppendUint(hash[:], since, 36)), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		return a.ask(ctx, g, hash, token, since)
	})
	select {
	case r := <-answer:
		id, _ := r.Val.(core.Identity)
		return id, r.Err
	case <-ctx.Done():
		return core.Identity{}, unavailable(ctx.Err())
	}
}

// ask puts the question to the adapter, and remembers the answer if there was one.
func (a *Access) ask(ctx context.Context, g *gate, hash fingerprint, token string, since uint64) (core.Identity, error) {
	said, err := guarded(func() (auth.Identity, error) {
		return g.adapter.Verify(ctx, auth.VerifyRequest{Token: token, Audiences: g.audiences})
	})
	if err == nil && !said.ExpiresAt.After(time.Now()) {
		err = fmt.Errorf("the adapter accepted a token that has expired or never does: %w", plugins.ErrUnauthenticated)
	}
	var id core.Identity
	if err == nil {
		id, err = a.admit(ctx, said)
	}
	switch {
	case err == nil:
		until := time.Now().Add(verifiedLife)
		if said.ExpiresAt.Before(until) {
			until = said.ExpiresAt
		}
		g.remember(hash, verified{id, until}, since)
		return id, nil
	case errors.Is(err, plugins.ErrUnauthenticated):
		g.refused.Add(hash, time.Now().Add(refusedLife))
		a.log.Debug("A token was refused", "reason", err)
		return core.Identity{}, unauthenticated()
	}
	a.log.Warn("A token could not be checked", "error", err)
	return core.Identity{}, unavailable(err)
}

// admit makes a user of what the adapter said. The server's own issuer is not for adapters to
// speak for.
func (a *Access) admit(ctx context.Context, said auth.Identity) (core.Identity, error) {
	if said.Issuer == "" || said.Subject == "" || said.Issuer == core.IssuerLocal {
		return core.Identity{}, fmt.Errorf("the adapter named no issuer, no subject, or the server's own issuer: %w", plugins.ErrUnauthenticated)
	}
	id := core.Identity{Issuer: said.Issuer, Subject: said.Subject, User: core.User{
		Email: said.Email, DisplayName: said.DisplayName, OrgRole: rank(said.OrgRole),
	}}
	user, err := a.users.Provision(ctx, id)
	if err != nil {
		return core.Identity{}, err
	}
	id.User = user
	return id, nil
}

// rank reads a role of the organization; what is not known counts as the least.
func rank(role string) core.Role {
	if r := core.Role(role); r.Admin() {
		return r
	}
	return core.RoleMember
}

// guarded turns an adapter's panic into an error: it runs where a panic would end the server.
func guarded(ask func() (auth.Identity, error)) (id auth.Identity, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the auth adapter panicked: %v", p)
		}
	}()
	return ask()
}
