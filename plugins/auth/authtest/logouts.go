package authtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// sessions are the promises of the capability "sessions".
func sessions(s Subject) []check {
	if !s.Rechecks {
		return []check{{name: "without the capability sessions its calls are unimplemented", contract: `SessionService is the optional capability "sessions"`, run: sessionsAreUnimplemented}}
	}
	if s.Keys == nil {
		return []check{{name: "an adapter with the capability sessions tells which session a logout token ends", contract: `SessionService is the optional capability "sessions"`, run: func(context.Context, *stage) error {
			return kit.Skip("the kit checks it on adapters of OpenID providers alone")
		}}}
	}
	all := append(rechecks(s), []check{
		{name: "a login has the session that logout tokens name", contract: "it is the one that logout tokens name", run: namesSession},
		{name: "a logout token names the session, the subject or both", contract: "what the provider ended: the session, or without one all sessions of the subject", run: acceptsLogouts},
		{name: "a logout token that comes again is checked again", contract: "except that it was not used before, which the server does", run: acceptsLogoutAgain},
		{name: "a logout token by a key that the provider rotated in is accepted", contract: "A key that the provider added is found by the first token that names it", run: logoutAfterRotation},
		{name: "a logout token whose key cannot be read is neither accepted nor refused", contract: "UNAVAILABLE means that the adapter cannot tell: never an acceptance and never a refusal", run: func(ctx context.Context, st *stage) error { return logoutCannotTell(ctx, st, s) }},
		{name: "the check of a logout token returns when its time is over", contract: "Calls come concurrently, each with a deadline", run: func(ctx context.Context, st *stage) error { return logoutInTime(ctx, st, s) }},
		{name: "logout tokens at once are each answered with their own session", contract: "Calls come concurrently, each with a deadline", run: logoutsAtOnce},
		{name: "a logout token is no bearer token", contract: "of another type than a JWT", run: logoutIsNoBearer},
		{name: "no error repeats the logout token", contract: "No token, code or secret appears in an error or a log line", run: repeatsNoLogout},
	}...)
	all = append(all, silenceAboutSessions()...)
	for _, clause := range logoutClauses() {
		all = append(all, check{name: "a logout token with " + clause.name + " is refused", contract: clause.contract, run: refusesLogouts(clause)})
	}
	return all
}

func sessionsAreUnimplemented(ctx context.Context, st *stage) error {
	sessions, ok := st.adapter.(auth.Sessions)
	if !ok {
		return nil
	}
	if _, err := sessions.VerifyLogout(ctx, "undefined"); !errors.Is(err, plugins.ErrUnimplemented) {
		return fmt.Errorf("an adapter that does not declare sessions answered a logout token with %w; it must be unimplemented", orEnded(err))
	}
	if _, err := sessions.CheckSession(ctx, auth.SessionCheck{Renewal: "undefined", Subject: "nobody"}); !errors.Is(err, plugins.ErrUnimplemented) {
		return fmt.Errorf("an adapter that does not declare sessions answered the check of a login with %w; it must be unimplemented", orEnded(err))
	}
	return nil
}

// logoutClaims are those of a good logout token for the session session_kit of user_alice.
func (p *Provider) logoutClaims(changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": p.Issuer(), "aud": ClientID, "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": rand.Text(),
		"sub": "user_alice", "sid": "session_kit", "events": map[string]any{logoutEvent: map[string]any{}},
	}
	return changed(claims, maps.Clone(changes))
}

// logoutToken is a logout token that the provider signed; nil among the changes takes a claim away.
func (p *Provider) logoutToken(changes map[string]any) string {
	key, kid := p.key()
	head := header(kid)
	head["typ"] = "logout+jwt"
	return compact(head, p.logoutClaims(changes), rs256(key))
}

// sessionsOf is the adapter's Sessions. An adapter that is not set up for logins has nothing to end.
func sessionsOf(ctx context.Context, st *stage) (auth.Sessions, error) {
	sessions, ok := st.adapter.(auth.Sessions)
	if !ok {
		return nil, errors.New("the adapter declares sessions, and has no VerifyLogout")
	}
	if loginOf(ctx, st) == nil {
		return nil, noLogin()
	}
	return sessions, nil
}

func namesSession(ctx context.Context, st *stage) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	if want := st.provider.sessionOf("user_alice"); l.identity.SessionID != want {
		return fmt.Errorf("the id token has the session (sid) %q, the login %q: a logout token for that session would end nothing", want, l.identity.SessionID)
	}
	return nil
}

// mustLogout compares what a good logout token was answered with.
func mustLogout(got auth.Logout, claims map[string]any) error {
	text := func(name string) string { s, _ := claims[name].(string); return s }
	exp := time.Unix(claims["exp"].(int64), 0) //nolint:forcetypeassert // the kit's own claims
	switch {
	case got.Issuer != text("iss"):
		return fmt.Errorf("was answered with the issuer %q, not %q", got.Issuer, text("iss"))
	case got.Subject != text("sub") || got.SessionID != text("sid"):
		return fmt.Errorf("about the subject %q and the session %q was answered with %q and %q", text("sub"), text("sid"), got.Subject, got.SessionID)
	case got.TokenID != text("jti"):
		return fmt.Errorf("was answered with the identifier %q; its jti is %q", got.TokenID, text("jti"))
	case got.ExpiresAt.Before(exp) || got.ExpiresAt.After(exp.Add(skewOfLogouts)):
		return fmt.Errorf("that is good until %s was answered with %s", exp.UTC(), got.ExpiresAt.UTC())
	}
	return nil
}

// skewOfLogouts is how far clocks may differ.
const skewOfLogouts = 30 * time.Second

func acceptsLogouts(ctx context.Context, st *stage) error {
	sessions, err := sessionsOf(ctx, st)
	if err != nil {
		return err
	}
	p := st.provider
	for _, c := range []struct {
		what    string
		changes map[string]any
		typ     any
	}{
		{"with a subject and a session", nil, "logout+jwt"},
		{"with a session alone", map[string]any{"sub": nil}, "logout+jwt"},
		{"with a subject alone", map[string]any{"sid": nil}, "logout+jwt"},
		{"of the type JWT", nil, "JWT"},
		{"without a type", nil, nil},
		{"for several audiences", map[string]any{"aud": []string{"client_other", ClientID}}, "logout+jwt"},
		{"with a second event", map[string]any{"events": map[string]any{logoutEvent: map[string]any{}, "https://example.com/event": map[string]any{}}}, "logout+jwt"},
		{"with a subject and a session of other characters", map[string]any{"sub": "auth0|é/用户", "sid": "s&=%20 +é"}, "logout+jwt"},
	} {
		key, kid := p.key()
		claims := p.logoutClaims(c.changes)
		l, err := sessions.VerifyLogout(ctx, compact(changed(header(kid), map[string]any{"typ": c.typ}), claims, rs256(key)))
		if err != nil {
			return fmt.Errorf("a good logout token %s was not accepted: %w", c.what, err)
		}
		if err := mustLogout(l, claims); err != nil {
			return fmt.Errorf("a logout token %s %w", c.what, err)
		}
	}
	return nil
}

func acceptsLogoutAgain(ctx context.Context, st *stage) error {
	sessions, err := sessionsOf(ctx, st)
	if err != nil {
		return err
	}
	token := st.provider.logoutToken(nil)
	for range 2 {
		if _, err := sessions.VerifyLogout(ctx, token); err != nil {
			return fmt.Errorf("a logout token that comes twice was not accepted (the server alone decides whether it was used, on all servers): %w", err)
		}
	}
	return nil
}

func logoutAfterRotation(ctx context.Context, st *stage) error {
	sessions, err := sessionsOf(ctx, st)
	if err != nil {
		return err
	}
	if _, err := sessions.VerifyLogout(ctx, st.provider.logoutToken(nil)); err != nil {
		return fmt.Errorf("a good logout token was not accepted: %w", err)
	}
	st.provider.Rotate()
	if _, err := sessions.VerifyLogout(ctx, st.provider.logoutToken(nil)); err != nil {
		return fmt.Errorf("a logout token by the provider's new key was not accepted: %w", err)
	}
	return nil
}

func logoutCannotTell(ctx context.Context, st *stage, s Subject) error {
	if _, err := sessionsOf(ctx, st); err != nil {
		return err
	}
	for _, fault := range []Fault{Away, Broken, Junk} {
		st.provider.SetFault(fault)
		if err := st.open(ctx, s); err != nil {
			return kit.Skip("the adapter does not start while its provider is away")
		}
		l, err := st.adapter.(auth.Sessions).VerifyLogout(ctx, st.provider.logoutToken(nil)) //nolint:forcetypeassert // the first one has it
		if err := mustNotTell(auth.Identity{Subject: l.Subject}, err); err != nil {
			return fmt.Errorf("a logout token whose key cannot be read %w", err)
		}
	}
	return nil
}

func logoutInTime(ctx context.Context, st *stage, s Subject) error {
	if _, err := sessionsOf(ctx, st); err != nil {
		return err
	}
	st.provider.SetFault(Hanging)
	if err := st.open(ctx, s); err != nil {
		return kit.Skip("the adapter does not start while its provider does not answer")
	}
	return inTime(ctx, "the check of a logout token", func(ctx context.Context) error {
		_, err := st.adapter.(auth.Sessions).VerifyLogout(ctx, st.provider.logoutToken(nil)) //nolint:forcetypeassert // the first one has it
		return err
	})
}

func logoutsAtOnce(ctx context.Context, st *stage) error {
	sessions, err := sessionsOf(ctx, st)
	if err != nil {
		return err
	}
	errs := make([]error, 24)
	var wg sync.WaitGroup
	for i := range errs {
		claims := map[string]any{"sub": fmt.Sprintf("user_%d", i), "sid": fmt.Sprintf("session_%d", i), "jti": rand.Text(), "exp": time.Now().Add(time.Minute).Unix()}
		token := st.provider.logoutToken(claims)
		wg.Go(func() {
			l, err := sessions.VerifyLogout(ctx, token)
			if err == nil {
				claims["iss"] = st.provider.Issuer()
				err = mustLogout(l, claims)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("of %d logout tokens at once, one %w", len(errs), err)
	}
	return nil
}

func logoutIsNoBearer(ctx context.Context, st *stage) error {
	token := st.provider.logoutToken(map[string]any{"aud": []string{ClientID, Audience}, "org_id": Organization})
	id, err := st.verify(ctx, token)
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a logout token as a bearer token %w", err)
	}
	return nil
}

func repeatsNoLogout(ctx context.Context, st *stage) error {
	sessions, err := sessionsOf(ctx, st)
	if err != nil {
		return err
	}
	for _, token := range []string{st.provider.logoutToken(map[string]any{"events": nil}), st.provider.logoutToken(map[string]any{"exp": int64(1)}), "a-logout-token-that-nobody-gave"} {
		if _, err := sessions.VerifyLogout(ctx, token); err != nil && strings.Contains(err.Error(), token) {
			return errors.New("the error about a logout token repeats it")
		}
	}
	return nil
}

// logoutClause is a part of what VerifyLogout promises to refuse.
type logoutClause struct {
	name, contract string
	tokens         func(p *Provider) map[string]string // by what is wrong with them
}

// logoutClauses are the parts of what VerifyLogout promises to refuse.
func logoutClauses() []logoutClause {
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	claims := func(all map[string]map[string]any) func(*Provider) map[string]string {
		return func(p *Provider) map[string]string {
			tokens := map[string]string{}
			for what, changes := range all {
				tokens[what] = p.logoutToken(changes)
			}
			return tokens
		}
	}
	one := func(what, claim string, value any) func(*Provider) map[string]string {
		return claims(map[string]map[string]any{what: {claim: value}})
	}
	return []logoutClause{
		{"a bad signature", "a bad signature", (*Provider).unsignedLogouts},
		{"another issuer", "another issuer or audience", func(p *Provider) map[string]string {
			return claims(map[string]map[string]any{"another provider": {"iss": "https://id.example.com"}, "the issuer with a slash more": {"iss": p.Issuer() + "/"}, "no issuer": {"iss": nil}})(p)
		}},
		{"another audience", "another issuer or audience", claims(map[string]map[string]any{
			"another client": {"aud": "client_other"}, "the audience of bearer tokens": {"aud": Audience}, "no audience": {"aud": nil},
			"the client with something after it": {"aud": ClientID + "2"}, "an empty list": {"aud": []string{}},
		})},
		{"no iat", "a missing iat, exp, jti or logout event", one("no iat", "iat", nil)},
		{"no exp", "a missing iat, exp, jti or logout event", claims(map[string]map[string]any{"no exp": {"exp": nil}, "an exp in text": {"exp": "2099-01-01T00:00:00Z"}})},
		{"no jti", "a missing iat, exp, jti or logout event", claims(map[string]map[string]any{"no jti": {"jti": nil}, "an empty jti": {"jti": ""}})},
		{"no logout event", "a missing iat, exp, jti or logout event", claims(map[string]map[string]any{
			"no events": {"events": nil}, "another event": {"events": map[string]any{"https://example.com/event": map[string]any{}}},
			"the event in a list": {"events": []string{logoutEvent}}, "the event in text": {"events": logoutEvent},
		})},
		{"an expiry that is over", "a token that has expired or was issued in the future", one("over for two minutes", "exp", at(-2*time.Minute))},
		{"a start that is still to come", "a token that has expired or was issued in the future", claims(map[string]map[string]any{"issued in an hour": {"iat": at(time.Hour), "exp": at(62 * time.Minute)}})},
		{"a nonce", "a nonce", claims(map[string]map[string]any{"a nonce": {"nonce": "n"}, "an empty nonce": {"nonce": ""}})},
		{"neither subject nor session", "neither a subject nor a session", claims(map[string]map[string]any{
			"neither": {"sub": nil, "sid": nil}, "both empty": {"sub": "", "sid": ""}, "both null": {"sub": json.RawMessage("null"), "sid": json.RawMessage("null")},
		})},
		{"another form", "anything that is not a logout token", (*Provider).noLogouts},
	}
}

// unsignedLogouts say everything right and are not signed by the provider's signing key.
func (p *Provider) unsignedLogouts() map[string]string {
	key, kid := p.key()
	head := func(changes map[string]any) map[string]any {
		return changed(header(kid), maps.Clone(changes))
	}
	parts := strings.Split(p.logoutToken(nil), ".")
	return map[string]string{
		"another key under the provider's key id": compact(head(nil), p.logoutClaims(nil), rs256(p.keys.forger)),
		"a key that the header brings":            compact(head(map[string]any{"kid": "forger", "jwk": jwkOf(p.keys.forger, "forger", "sig")}), p.logoutClaims(nil), rs256(p.keys.forger)),
		"the provider's key that is not to sign":  compact(head(map[string]any{"kid": "encryption"}), p.logoutClaims(nil), rs256(p.keys.encryption)),
		"the algorithm none":                      compact(head(map[string]any{"alg": "none"}), p.logoutClaims(nil), func([]byte) []byte { return nil }),
		"the algorithm HS256 with the public key": compact(head(map[string]any{"alg": "HS256"}), p.logoutClaims(nil), hs256(key.N.Bytes())),
		"the claims of another token":             parts[0] + "." + encodeJSON(p.logoutClaims(map[string]any{"sub": "user_bob"})) + "." + parts[2],
		"a signature of zeros":                    parts[0] + "." + parts[1] + "." + encode(make([]byte, 256)),
		"no signature":                            parts[0] + "." + parts[1] + ".",
	}
}

// noLogouts are signed by the provider, if they are tokens, and are no logout tokens.
func (p *Provider) noLogouts() map[string]string {
	key, kid := p.key()
	typed := func(typ string) string {
		return compact(changed(header(kid), map[string]any{"typ": typ}), p.logoutClaims(nil), rs256(key))
	}
	return map[string]string{
		"an empty text": "", "a word": "undefined", "JSON": `{"sub":"user_alice"}`,
		"an access token": p.Token(), "an id token": p.Token(map[string]any{"aud": ClientID, "nonce": "n", "sid": "session_kit"}),
		"an access token by its type": typed("at+jwt"), "the word Bearer before it": "Bearer " + p.logoutToken(nil),
		"a text of many characters": strings.Repeat("x", 100_000),
	}
}

func refusesLogouts(clause logoutClause) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		sessions, err := sessionsOf(ctx, st)
		if err != nil {
			return err
		}
		if _, err := sessions.VerifyLogout(ctx, st.provider.logoutToken(nil)); err != nil {
			return fmt.Errorf("a good logout token was not accepted, so refusing others proves nothing: %w", err)
		}
		tokens := clause.tokens(st.provider)
		for _, what := range slices.Sorted(maps.Keys(tokens)) {
			l, err := sessions.VerifyLogout(ctx, tokens[what])
			switch {
			case err == nil:
				return fmt.Errorf("a logout token with %s (%s) was accepted: it would end the session %q of %q", clause.name, what, l.SessionID, l.Subject)
			case !errors.Is(err, plugins.ErrUnauthenticated):
				return fmt.Errorf("a logout token with %s (%s) was answered with %w; it must be refused as unauthenticated", clause.name, what, err)
			}
		}
		return nil
	}
}
