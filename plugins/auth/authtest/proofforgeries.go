package authtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// proofClause is one thing that a DPoP proof must be, and proofs that are not.
type proofClause struct {
	name   string
	proofs func(p *Provider, h holder, token string) map[string]string // by what is wrong with them
}

// proofClauses are what RFC 9449 section 4.3 has a server check.
func proofClauses() []proofClause {
	claims := func(all map[string]map[string]any) func(*Provider, holder, string) map[string]string {
		return func(_ *Provider, h holder, token string) map[string]string {
			proofs := map[string]string{}
			for what, changes := range all {
				proofs[what] = h.proof(token, nil, changes)
			}
			return proofs
		}
	}
	return []proofClause{
		{"for another method", claims(map[string]map[string]any{"GET": {"htm": "GET"}, "the method in small letters": {"htm": strings.ToLower(provenMethod)}, "an empty method": {"htm": ""}, "no method": {"htm": nil}, "more than the method": {"htm": provenMethod + "S"}})},
		{"for another URL", claims(map[string]map[string]any{
			"another path": {"htu": "https://ropewalk.example/v1/tools"}, "a longer path": {"htu": provenURL + "/more"}, "the start of the URL": {"htu": "https://ropewalk.example/"},
			"another host": {"htu": "https://elsewhere.example/mcp"}, "a longer host": {"htu": "https://ropewalk.example.org/mcp"}, "another port": {"htu": "https://ropewalk.example:8443/mcp"},
			"another scheme": {"htu": "http://ropewalk.example/mcp"}, "the URL in a query": {"htu": "https://elsewhere.example/?" + provenURL},
			"an empty URL": {"htu": ""}, "no URL": {"htu": nil}, "the path in capitals": {"htu": "https://ropewalk.example/MCP"},
		})},
		{"for another token", func(p *Provider, h holder, token string) map[string]string {
			return map[string]string{
				"another token": h.proof(h.token(p, map[string]any{"jti": "another"}), nil, nil), "no token (ath)": h.proof(token, nil, map[string]any{"ath": nil}),
				"an empty ath": h.proof(token, nil, map[string]any{"ath": ""}), "the token itself as ath": h.proof(token, nil, map[string]any{"ath": token}),
			}
		}},
		{"of another key", func(p *Provider, _ holder, token string) map[string]string {
			proofs := map[string]string{}
			for _, other := range p.keys.strangers() {
				proofs["signed with "+other.algorithm] = other.proof(token, nil, nil)
			}
			return proofs
		}},
		{"with a bad signature", badProofSignatures},
		{"of another form", otherProofForms},
		{"without a jti", claims(map[string]map[string]any{"no jti": {"jti": nil}, "an empty jti": {"jti": ""}})},
		{"of another day", claims(map[string]map[string]any{
			"no iat": {"iat": nil}, "issued a day ago": {"iat": time.Now().Add(-24 * time.Hour).Unix()}, "issued tomorrow": {"iat": time.Now().Add(24 * time.Hour).Unix()},
		})},
	}
}

// strangers have keys that no token is bound to.
func (k *Keys) strangers() []holder {
	plain := func(key map[string]any) map[string]any {
		maps.DeleteFunc(key, func(name string, _ any) bool { return name == "kid" || name == "use" || name == "alg" })
		return key
	}
	return []holder{{"ES256", plain(jwkOfCurve(k.ownCurve)), es256(k.ownCurve)}, {"RS256", plain(jwkOf(k.second, "", "")), rs256(k.second)}}
}

// badProofSignatures name the key that the token is bound to and are not signed with it.
func badProofSignatures(p *Provider, h holder, token string) map[string]string {
	good := strings.Split(h.proof(token, nil, nil), ".")
	other := strings.Split(h.proof(token, nil, nil), ".")
	stranger := p.keys.strangers()[0]
	return map[string]string{
		"the signature of another proof":     good[0] + "." + good[1] + "." + other[2],
		"the claims of another proof":        good[0] + "." + other[1] + "." + good[2],
		"a signature of zeros":               good[0] + "." + good[1] + "." + encode(make([]byte, len(decode(good[2])))),
		"no signature":                       good[0] + "." + good[1] + ".",
		"the algorithm none":                 holder{"none", h.jwk, func([]byte) []byte { return nil }}.proof(token, nil, nil),
		"the algorithm HS256 with that key":  holder{"HS256", h.jwk, hs256(decode(encodeJSON(h.jwk)))}.proof(token, nil, nil),
		"the signature of somebody else":     holder{"ES256", h.jwk, stranger.sign}.proof(token, nil, nil),
		"somebody else's, with a kid beside": holder{"ES256", stranger.jwk, stranger.sign}.proof(token, map[string]any{"kid": h.thumbprint(), "jkt": h.thumbprint()}, nil),
	}
}

// otherProofForms are no DPoP proofs.
func otherProofForms(p *Provider, h holder, token string) map[string]string {
	good := h.proof(token, nil, nil)
	return map[string]string{
		"a word": "junk", "the token": token, "the type JWT": h.proof(token, map[string]any{"typ": "JWT"}, nil), "no type": h.proof(token, map[string]any{"typ": nil}, nil),
		"no key": h.proof(token, map[string]any{"jwk": nil}, nil), "the private key": h.proof(token, map[string]any{"jwk": p.keys.private(h)}, nil),
		"two proofs": h.proof(token, nil, nil) + ", " + good, "a fourth part": h.proof(token, nil, nil) + "." + encode([]byte("x")),
		"no claims": compact(map[string]any{"typ": "dpop+jwt", "alg": h.algorithm, "jwk": h.jwk}, map[string]any{}, h.sign),
		"a list":    compact(map[string]any{"typ": "dpop+jwt", "alg": h.algorithm, "jwk": h.jwk}, []string{good}, h.sign),
	}
}

func refusesProofs(clause proofClause) func(context.Context, *stage, holder) error {
	return func(ctx context.Context, st *stage, h holder) error {
		token := h.token(st.provider)
		forged := clause.proofs(st.provider, h, token)
		for _, what := range slices.Sorted(maps.Keys(forged)) {
			id, err := st.bound(ctx, token, forged[what], "")
			if err := mustRefuse(id, err); err != nil {
				return fmt.Errorf("a bound token with a DPoP proof %s (%s) %w", clause.name, what, err)
			}
		}
		return nil
	}
}
