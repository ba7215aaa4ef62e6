package access

import (
	"context"
	"encoding/json"
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
	maxToken = 16 << 10 // bytes; longer bearers are refused
	maxSwaps = 3        // how many times a verification is repeated because the adapter was replaced
)

// verify authenticates a token. It caches verdicts, and calls the adapter once for all concurrent requests with the
// same token. A token may be issued for a resource under /mcp ("" for none), in which case it is accepted only there.
func (a *Access) verify(ctx context.Context, token, resource string) (core.Identity, error) {
	if len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return core.Identity{}, unauthenticated()
	}
	if a.gate.Load().binds {
		if request := core.TokenRequestOf(ctx); request.HasProof() {
			return request.Judge(token+" "+resource, func() (core.Identity, error) { return a.verifyProof(ctx, token, resource) })
		}
	}
	hash := fingerprintOf(token)
	if resource != "" {
		hash = fingerprintOf(token + " " + resource) // a token never contains a space
	}
	for range maxSwaps {
		g := a.gate.Load()
		if len(g.providers) == 0 {
			return core.Identity{}, unauthenticated()
		}
		if cached, ok := g.verified.entries.Get(hash); ok && time.Now().Before(cached.until) {
			return cached.value, nil
		}
		if until, ok := g.refused.Get(hash); ok && time.Now().Before(until) {
			return core.Identity{}, unauthenticated()
		}
		id, err := a.shared(ctx, g, hash, token, resource)
		if a.gate.Load() == g {
			return id, err
		}
	}
	return core.Identity{}, unavailable(errors.New("the auth adapter was replaced repeatedly"))
}

// verifyProof authenticates a token whose request carries a proof of possession (DPoP or a client certificate). A proof
// is valid for one request, so the verdict is neither cached nor shared.
func (a *Access) verifyProof(ctx context.Context, token, resource string) (core.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for range maxSwaps {
		g := a.gate.Load()
		since := g.verified.change()
		id, _, err := a.judge(ctx, g, token, resource)
		if err == nil && g.verified.change() != since {
			err = a.revokedMeanwhile(ctx, id)
		}
		if a.gate.Load() != g {
			continue
		}
		if err != nil {
			return core.Identity{}, a.failure(err)
		}
		return id, nil
	}
	return core.Identity{}, unavailable(errors.New("the auth adapter was replaced repeatedly"))
}

// failure logs why a token was not verified, and returns the error for the caller.
func (a *Access) failure(err error) error {
	if errors.Is(err, plugins.ErrUnauthenticated) {
		a.log.Debug("token refused", "error", err)
		return unauthenticated()
	}
	a.log.Warn("token not verified", "error", err)
	return unavailable(err)
}

// shared joins the pending verification of the token, or starts one. Cancelling one request does not cancel the
// verification for the others.
func (a *Access) shared(ctx context.Context, g *gate, hash fingerprint, token, resource string) (core.Identity, error) {
	since := g.verified.change() // a verdict from before a change to the user is not used
	answer := g.pending.DoChan(string(strconv.AppendUint(hash[:], since, 36)), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		return a.ask(ctx, g, hash, token, resource, since)
	})
	select {
	case r := <-answer:
		id, _ := r.Val.(core.Identity)
		return id, r.Err
	case <-ctx.Done():
		return core.Identity{}, unavailable(ctx.Err())
	}
}

// ask has the providers verify a token, and caches the verdict.
func (a *Access) ask(ctx context.Context, g *gate, hash fingerprint, token, resource string, since uint64) (core.Identity, error) {
	id, expires, err := a.judge(ctx, g, token, resource)
	if err == nil && g.verified.change() != since {
		err = a.revokedMeanwhile(ctx, id)
	}
	switch {
	case err == nil:
		until := time.Now().Add(verifiedLife)
		if expires.Before(until) {
			until = expires
		}
		g.verified.put(hash, entry[core.Identity]{value: id, until: until}, since)
		return id, nil
	case errors.Is(err, plugins.ErrUnauthenticated):
		g.refused.Add(hash, time.Now().Add(refusedLife))
	}
	return core.Identity{}, a.failure(err)
}

// revokedMeanwhile returns an error if the token or its subject was revoked while the token was being verified.
func (a *Access) revokedMeanwhile(ctx context.Context, id core.Identity) error {
	if a.revoked == nil {
		return nil
	}
	revoked, err := a.revoked.Revoked(ctx, id)
	if err == nil && revoked {
		err = fmt.Errorf("the token was revoked while it was being verified: %w", plugins.ErrUnauthenticated)
	}
	return err
}

// judge passes a token to its provider, or to each provider until one accepts it. The token is refused only if all
// of them refuse it.
func (a *Access) judge(ctx context.Context, g *gate, token, resource string) (core.Identity, time.Time, error) {
	began := time.Now()
	var refused, failed error
	for _, p := range g.candidates(ctx, token) {
		verified, err := p.verify(ctx, token, resource)
		if err == nil && len(g.providers) > 1 {
			err = p.checkOwnIssuer(ctx, verified)
		}
		var id core.Identity
		if err == nil {
			id, err = a.admit(ctx, p, verified)
		}
		if err == nil {
			id.Token, id.Since, id.Issued = fingerprintOf(token).String(), began, issuedAt(verified)
			err = a.refuseRevoked(ctx, id)
		}
		switch {
		case err == nil:
			return id, verified.ExpiresAt, nil
		case errors.Is(err, plugins.ErrUnauthenticated):
			refused = errors.Join(refused, err)
		default:
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return core.Identity{}, time.Time{}, failed
	}
	return core.Identity{}, time.Time{}, refused
}

// verify has the adapter verify a token. If the adapter binds tokens to requests, it also checks the request in ctx.
func (t *trusted) verify(ctx context.Context, token, resource string) (auth.Identity, error) {
	req := auth.VerifyRequest{Token: token, Audiences: t.audiencesOf(resource)}
	if request := core.TokenRequestOf(ctx); t.binds && request != nil {
		req.Method, req.URL, req.ClientCertificateSHA256 = request.Method, request.URL, request.ClientCertificate
		if request.DPoP != "" {
			req.Headers = map[string]string{"dpop": request.DPoP}
		}
	}
	verified, err := guarded(func() (auth.Identity, error) { return t.Adapter.Verify(ctx, req) })
	if err == nil && !verified.ExpiresAt.After(time.Now()) {
		err = fmt.Errorf("the adapter accepted a token that has expired or has no expiry: %w", plugins.ErrUnauthenticated)
	}
	return verified, err
}

// checkOwnIssuer returns an error if a provider vouches for an issuer other than its own.
func (t *trusted) checkOwnIssuer(ctx context.Context, verified auth.Identity) error {
	about, err := t.describe(ctx)
	if err == nil && about.Issuer != verified.Issuer {
		err = fmt.Errorf("the provider %q accepted a token from another issuer: %w", t.Name, plugins.ErrUnauthenticated)
	}
	return err
}

// provisionedAs is the key of the user cache. It includes the roles because a role that the token no longer grants must
// not apply.
type provisionedAs struct {
	issuer, subject string
	orgRole         core.Role
	adminBy         string
	groupRoles      string
	groups          string
	groupsUnknown   bool
}

// admit provisions the user of an identity and returns the identity with the user. Adapters may not use the
// server's own issuers.
func (a *Access) admit(ctx context.Context, p *trusted, verified auth.Identity) (core.Identity, error) {
	if verified.Issuer == "" || verified.Subject == "" || verified.Issuer == core.IssuerLocal || verified.Issuer == core.IssuerKey {
		return core.Identity{}, fmt.Errorf("the adapter returned no issuer, no subject, or one of the server's own issuers: %w", plugins.ErrUnauthenticated)
	}
	if verified.Subject != core.PlainText(verified.Subject) {
		return core.Identity{}, fmt.Errorf("the adapter returned a subject with control characters: %w", plugins.ErrUnauthenticated)
	}
	if verified.Email != core.PlainText(verified.Email) { // otherwise it would be stored, and matched, as somebody else's
		verified.Email = ""
	}
	id := core.Identity{Issuer: verified.Issuer, Subject: verified.Subject, User: core.User{
		Email: verified.Email, DisplayName: core.PlainText(verified.DisplayName), OrgRole: rank(verified.OrgRole),
	}, Granted: strings.Join(verified.Scopes, " "), Session: core.SessionHash(verified.Issuer, verified.SessionID)}
	id.User.AdminBy = p.rules.adminBy(verified)
	id.User.Groups, id.GroupsUnknown = core.GroupList(verified.Groups), verified.Groups == nil
	as := provisionedAs{id.Issuer, id.Subject, id.User.OrgRole, id.User.AdminBy, p.rules.groupRoles(verified), id.User.Groups, id.GroupsUnknown}
	user, err := a.provisioned.get(ctx, as, 0, func(ctx context.Context) (core.User, error) {
		user, err := a.users.Provision(ctx, id, p.SameAs)
		if err == nil {
			user, err = a.enroll(ctx, p.rules, user, as.groupRoles)
		}
		return user, err
	})
	if err != nil {
		return core.Identity{}, err
	}
	id.User = user
	return id, nil
}

// issuedAt returns when a token was issued (claim iat), to the second; zero if the token does not have it.
func issuedAt(verified auth.Identity) time.Time {
	var claims struct {
		Issued *float64 `json:"iat"`
	}
	if json.Unmarshal(verified.Claims, &claims) != nil || claims.Issued == nil {
		return time.Time{}
	}
	return time.Unix(int64(*claims.Issued), 0)
}

// rank parses an organization role; unknown roles become member.
func rank(role string) core.Role {
	if r := core.Role(role); r.Admin() {
		return r
	}
	return core.RoleMember
}

// guarded turns a panic in the adapter into an error, because the call runs in a goroutine without a recover.
func guarded(ask func() (auth.Identity, error)) (id auth.Identity, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the auth adapter panicked: %v", p)
		}
	}()
	return ask()
}
