package accounts

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	revokeEvery   = time.Minute        // how often to look for tokens that a peer server left behind or that could not be revoked
	revokeRetry   = 5 * time.Minute    // pause before a failed revocation is retried
	revokeFor     = 7 * 24 * time.Hour // how long to retry
	revokeAtOnce  = 20
	revokeTimeout = 30 * time.Second
)

// Run revokes the tokens of unlinked accounts until ctx ends: accounts that people unlinked, and accounts of deleted
// people and apps.
func (m *Manager) Run(ctx context.Context) {
	tick := time.NewTicker(revokeEvery)
	defer tick.Stop()
	for {
		due, err := m.o.Store.ClaimRevocations(ctx, revokeAtOnce, revokeRetry)
		if err != nil && ctx.Err() == nil {
			m.log.Warn("could not read the tokens of unlinked accounts", "error", err)
		}
		for _, one := range due {
			m.finishRevocation(ctx, one)
		}
		if len(due) == revokeAtOnce {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.wake:
		}
	}
}

func (m *Manager) wakeRevoker() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// MembersChanged drops everything cached, and makes Run look for the tokens of deleted people.
func (m *Manager) MembersChanged(string) {
	m.Changed("")
	m.wakeRevoker()
}

func (m *Manager) finishRevocation(ctx context.Context, one core.AccountRevocation) {
	err := m.revoke(ctx, one.Grant)
	switch {
	case err != nil && time.Since(one.UnlinkedAt) < revokeFor:
		m.log.Debug("could not revoke the tokens of an unlinked account; retrying", "account", one.Account, "attempts", one.Attempts, "reason", err)
		return
	case err != nil:
		m.log.Warn("could not revoke the tokens of an unlinked account; giving up", "account", one.Account, "attempts", one.Attempts, "reason", err)
	}
	if err := m.o.Store.RevocationDone(ctx, one.Account); err != nil && ctx.Err() == nil {
		m.log.Warn("could not record a revocation as done; it will be repeated", "account", one.Account, "error", err)
	}
}

// revoke revokes the tokens of a grant (RFC 7009), the refresh token first: most servers then revoke the whole grant.
func (m *Manager) revoke(ctx context.Context, g core.Grant) error {
	if g.RevokeURL == "" {
		return nil
	}
	for _, token := range []struct {
		hint string
		text core.Secret
	}{{"refresh_token", g.RefreshToken}, {"access_token", g.AccessToken}} {
		if token.text == "" {
			continue
		}
		if err := m.revokeOne(ctx, g, token.hint, token.text); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) revokeOne(ctx context.Context, g core.Grant, hint string, token core.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
	defer cancel()
	status, _, err := m.postForm(ctx, g, g.RevokeURL, url.Values{"token": {token.Reveal()}, "token_type_hint": {hint}})
	if err != nil {
		return err
	}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return fmt.Errorf("%s returned %d", hostOf(g.RevokeURL), status)
	}
	return nil // status 200, or the server does not revoke this kind of token
}
