package authtest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// grant is what a login was granted: the tokens of a subject in a session.
type grant struct{ subject, session, client string }

// sessionState is what a Provider knows of the logins at it. The mutex of the Provider guards it.
type sessionState struct {
	subject   string           // who logs in
	refreshes bool             // logins get refresh tokens, each good once
	refresh   map[string]grant // by refresh token
	ended     map[string]bool  // subjects whose sessions were ended
	becomes   string           // whom every login is about from now on; "" for its own subject
	access    map[string]bool  // the access tokens of logins; false once they are over
}

func newSessionState() sessionState {
	return sessionState{subject: "user_alice", refresh: map[string]grant{}, ended: map[string]bool{}, access: map[string]bool{}}
}

// begin is the grant of a new login.
func (s *sessionState) begin() grant {
	return grant{subject: s.subject, session: "session_" + rand.Text(), client: ClientID}
}

// renew gives a new refresh token, or none.
func (s *sessionState) renew(g grant) string {
	if !s.refreshes {
		return ""
	}
	token := "1//" + rand.Text() + rand.Text() + "+=" // with characters that are escaped in forms
	s.refresh[token] = g
	return token
}

// subjectOf is whom the UserInfo endpoint answers about; false when the token is over or its session was ended.
func (s *sessionState) subjectOf(access string) (string, bool) {
	var claims struct {
		Subject string `json:"sub"`
	}
	if parts := strings.Split(access, "."); len(parts) == 3 {
		raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(raw, &claims)
	}
	good, given := s.access[access]
	switch {
	case claims.Subject == "" || given && !good || s.ended[claims.Subject]:
		return "", false
	case s.becomes != "":
		return s.becomes, true
	}
	return claims.Subject, true
}

// refresh answers a refresh request (RFC 6749 section 6).
func (p *Provider) refresh(w http.ResponseWriter, token, client string) {
	p.mu.Lock()
	g, ok := p.sessions.refresh[token]
	delete(p.sessions.refresh, token)
	ok = ok && !p.sessions.ended[g.subject] && client == g.client
	next := ""
	if ok {
		if p.sessions.becomes != "" {
			g.subject = p.sessions.becomes
		}
		next = p.sessions.renew(g)
	}
	p.mu.Unlock()
	if !ok {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.grantTokens(w, g, next, "")
}

// signIn sets who logs in from now on, and whether logins get refresh tokens.
func (p *Provider) signIn(subject string, refreshes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions.subject, p.sessions.refreshes = subject, refreshes
	delete(p.sessions.ended, subject)
}

// endSessions ends all sessions of a subject.
func (p *Provider) endSessions(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions.ended[subject] = true
}

// endAccess ends the time of all access tokens that logins have got.
func (p *Provider) endAccess() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for access := range p.sessions.access {
		p.sessions.access[access] = false
	}
}

// become makes all logins those of another subject.
func (p *Provider) become(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions.becomes = subject
}

// refreshTokens are those that were given and not used.
func (p *Provider) refreshTokens() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.sessions.refresh))
}

// sessionOf is the session of the last login of a subject, which got a refresh token that was not used.
func (p *Provider) sessionOf(subject string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.sessions.refresh {
		if g.subject == subject {
			return g.session
		}
	}
	return ""
}
