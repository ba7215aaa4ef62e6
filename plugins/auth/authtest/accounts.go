package authtest

import (
	"crypto/rand"
	"maps"
	"net/http"
	"time"
)

// grant is what a login was granted: the subject and session that its tokens are for.
type grant struct {
	subject, session string
	refreshes        bool
}

// accounts is the part of a Provider's state that concerns its logins.
type accounts struct {
	subject      string           // who logs in
	refreshes    bool             // logins get refresh tokens, each valid once
	reuses       bool             // refresh tokens instead stay valid as long as the login, and are returned only once
	refresh      map[string]grant // by refresh token
	ended        map[string]bool  // by session
	becomes      string           // the subject of every login from now on; "" if each keeps its own
	access       map[string]grant // by access token; expired ones are removed
	forge        func(claims map[string]any) any
	plain        bool              // tokens contain neither name nor email address
	more         map[string]any    // overrides members of the UserInfo response
	otherSubject bool              // access tokens are about another subject
	idTokens     map[string]string // the last one that was issued, by the nonce of its login; "" for one that was not a string
}

func newAccounts() accounts {
	return accounts{subject: "user_alice", refresh: map[string]grant{}, ended: map[string]bool{}, access: map[string]grant{}, idTokens: map[string]string{}}
}

func (a *accounts) begin() grant { return grant{a.subject, "session_" + rand.Text(), a.refreshes} }

// renew returns a new refresh token, or "".
func (a *accounts) renew(g grant) string {
	if !g.refreshes {
		return ""
	}
	token := "1//" + rand.Text() + rand.Text() + "+=" // with characters that must be escaped in forms
	a.refresh[token] = g
	return token
}

// who returns the current subject of a grant.
func (a *accounts) who(g grant) string {
	if a.becomes != "" {
		return a.becomes
	}
	return g.subject
}

// info returns the UserInfo response, or nil if the token is unknown or its session is over.
func (a *accounts) info(access string) map[string]any {
	g, good := a.access[access]
	if !good || a.ended[g.session] {
		return nil
	}
	subject := a.who(g)
	return changed(map[string]any{"sub": subject, "name": nameOf(subject), "email": emailOf(subject), "email_verified": true, RoleClaim: "owner", "groups": []string{"admins"}}, a.more)
}

func nameOf(subject string) string { return "Name of " + subject }

func emailOf(subject string) string { return subject + "@example.com" }

// refresh handles a refresh request (RFC 6749 section 6).
func (p *Provider) refresh(w http.ResponseWriter, token, client string) {
	var g grant
	var ok bool
	next := ""
	p.set(func(s *state) {
		g, ok = s.refresh[token]
		if ok = ok && !s.ended[g.session] && client == p.ClientID; s.reuses {
			return
		}
		if delete(s.refresh, token); ok {
			next = s.renew(g)
		}
	})
	if !ok {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.grantTokens(w, g, next, "")
}

// grantTokens sends the tokens of a login. There is no refresh token if refresh is empty.
func (p *Provider) grantTokens(w http.ResponseWriter, g grant, refresh, nonce string) {
	now := p.now()
	subject := now.who(g)
	claims := changed(p.Claims(), map[string]any{"sub": subject, "name": nameOf(subject), "email": emailOf(subject)})
	if now.plain {
		claims = changed(claims, map[string]any{"name": nil, "email": nil, "email_verified": nil})
	}
	access := p.tokenOf(p.signer(), changed(claims, map[string]any{"jti": rand.Text()}))
	if now.otherSubject {
		access = p.Token(map[string]any{"sub": "user_mallory", "name": "Mallory", "email": "mallory@example.com", RoleClaim: "owner"})
	}
	claims = changed(claims, map[string]any{"sid": g.session, "aud": p.ClientID, "scope": nil})
	if nonce != "" {
		claims["nonce"] = nonce
	}
	id := any(p.tokenOf(p.signer(), claims))
	if now.forge != nil {
		id = now.forge(maps.Clone(claims))
	}
	text, _ := id.(string)
	p.set(func(s *state) {
		s.access[access], s.idTokens[nonce] = g, text
		s.given.add("an access token of a login", access)
		s.given.add("a refresh token", refresh)
		s.given.add("an id token", text)
	})
	tokens := map[string]any{"token_type": "Bearer", "expires_in": 600, "access_token": access, "id_token": id}
	if refresh != "" {
		tokens["refresh_token"] = refresh
	}
	answer(w, http.StatusOK, changed(tokens))
}

// idToken returns the last id token that was issued for a nonce; "" if it was not a string.
func (p *Provider) idToken(nonce string) (token string) {
	p.set(func(s *state) { token = s.idTokens[nonce] })
	return token
}

// logoutClaims returns the claims of a valid logout token.
func (p *Provider) logoutClaims() map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": p.Issuer(), "aud": p.ClientID, "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": rand.Text(),
		"sub": "user_alice", "sid": "session_" + rand.Text(), "events": map[string]any{logoutEvent: map[string]any{}},
	}
}

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
