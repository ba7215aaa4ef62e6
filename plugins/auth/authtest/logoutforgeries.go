package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

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
