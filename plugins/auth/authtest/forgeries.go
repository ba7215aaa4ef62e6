package authtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Clause is a part of what Verify promises to refuse.
type Clause string

// The clauses of Verify's contract.
const (
	Signature  Clause = "a bad signature"
	Algorithm  Clause = "another algorithm"
	Issuer     Clause = "another issuer"
	ForAnother Clause = "another audience"
	Expired    Clause = "an expiry that is over"
	NoExpiry   Clause = "no expiry"
	NotYet     Clause = "a start that is still to come"
	OtherOrg   Clause = "another organization"
	Form       Clause = "another form"
)

// contract is the part of the contract that a clause is of.
func (c Clause) contract() string {
	return map[Clause]string{
		Signature: "a bad signature", Algorithm: "an algorithm that Describe does not name", Issuer: "a wrong issuer",
		ForAnother: "audience none of which is in the request", Expired: "a token that is expired", NoExpiry: "has no expiry",
		NotYet: "not yet valid (nbf, iat)", OtherOrg: "a token of another organization where the settings name one", Form: "another form than the expected one",
	}[c]
}

func clauses() []Clause {
	return []Clause{Signature, Algorithm, Issuer, ForAnother, Expired, NoExpiry, NotYet, OtherOrg, Form}
}

func (c Clause) known() bool { return slices.Contains(clauses(), c) }

// Forgery is a token that must be refused.
type Forgery struct {
	Name   string // what is wrong with it
	Clause Clause
	Token  string
}

// Forgeries are tokens that an adapter for p must refuse, each wrong in one way only: those of the
// clauses, or all of them when none is named.
func (p *Provider) Forgeries(clauses ...Clause) []Forgery {
	var all []Forgery
	for _, d := range slices.Concat(p.forgedClaims(), p.forgedSignatures(), p.forgedAlgorithms()) {
		if len(clauses) == 0 || slices.Contains(clauses, d.clause) {
			all = append(all, Forgery{Name: d.name, Clause: d.clause, Token: d.make()})
		}
	}
	return all
}

// draft is a forgery that nobody has signed yet.
type draft struct {
	clause Clause
	name   string
	make   func() string
}

// claimForgery is what the claims of a token say that is wrong.
type claimForgery struct {
	clause Clause
	name   string
	change map[string]any
}

// forgedClaims are signed by the provider: what they say is what is wrong.
func (p *Provider) forgedClaims() []draft {
	var all []draft
	for _, f := range append(p.forgedNames(), p.forgedTimes()...) {
		all = append(all, draft{f.clause, f.name, func() string { return p.Token(f.change) }})
	}
	return all
}

// forgedTimes are about another time, another organization or no person.
func (p *Provider) forgedTimes() []claimForgery {
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	return []claimForgery{
		{Expired, "over for two minutes", map[string]any{"exp": at(-2 * time.Minute)}},
		{Expired, "over since 1970", map[string]any{"exp": 0}},
		{Expired, "a negative expiry", map[string]any{"exp": -at(time.Hour)}},
		{NoExpiry, "no expiry", map[string]any{"exp": nil}},
		{NoExpiry, "an expiry in text", map[string]any{"exp": "2099-01-01T00:00:00Z"}},
		{NoExpiry, "an expiry that is a number in text", map[string]any{"exp": strconv.FormatInt(at(time.Hour), 10)}},
		{NoExpiry, "an expiry that is true", map[string]any{"exp": true}},
		{NoExpiry, "an expiry that is null", map[string]any{"exp": json.RawMessage("null")}},
		{NoExpiry, "an expiry in capitals", map[string]any{"exp": nil, "EXP": at(time.Hour), "Exp": at(time.Hour)}},
		{NoExpiry, "an expiry in a list", map[string]any{"exp": []int64{at(time.Hour)}}},
		{NoExpiry, "an expiry without end", map[string]any{"exp": 1e300}},
		{NotYet, "not before the next hour", map[string]any{"nbf": at(time.Hour)}},
		{NotYet, "issued in the next hour", map[string]any{"iat": at(time.Hour)}},
		{NotYet, "not before the next hour, as a number in text", map[string]any{"nbf": strconv.FormatInt(at(time.Hour), 10)}},
		{NotYet, "issued in the next hour, as a number in text", map[string]any{"iat": strconv.FormatInt(at(time.Hour), 10)}},
		{OtherOrg, "another organization", map[string]any{"org_id": "org_other"}},
		{OtherOrg, "the organization with something after it", map[string]any{"org_id": Organization + "2"}},
		{OtherOrg, "the start of the organization", map[string]any{"org_id": Organization[:len(Organization)-1]}},
		{OtherOrg, "the organization in capitals", map[string]any{"org_id": strings.ToUpper(Organization)}},
		{OtherOrg, "the organization and white space", map[string]any{"org_id": " " + Organization}},
		{OtherOrg, "an empty organization", map[string]any{"org_id": ""}},
		{OtherOrg, "the organization as the name of a member", map[string]any{"org_id": map[string]any{Organization: true}}},
		{OtherOrg, "the organization in another claim", map[string]any{"org_id": "org_other", "organization": Organization, "org": Organization, "tenant": Organization}},
		{OtherOrg, "a list of other organizations", map[string]any{"org_id": []string{"org_other"}}},
		{OtherOrg, "no organization", map[string]any{"org_id": nil}},
		{Form, "no subject", map[string]any{"sub": nil}},
		{Form, "an empty subject", map[string]any{"sub": ""}},
		{Form, "a subject that is a number", map[string]any{"sub": 7}},
		{Form, "a subject in capitals", map[string]any{"sub": nil, "SUB": "user_alice"}},
		{Form, "a subject in a list", map[string]any{"sub": []string{"user_alice"}}},
		{Form, "bound to a certificate of its holder", map[string]any{"cnf": map[string]any{"x5t#S256": "x"}}},
		{Form, "bound to a key by its id", map[string]any{"cnf": map[string]any{"kid": "x"}}},
		{Form, "bound to a whole key", map[string]any{"cnf": map[string]any{"jwk": map[string]any{"kty": "oct"}}}},
		{Form, "bound to a key of its holder", map[string]any{"cnf": map[string]any{"jkt": "x"}}},
	}
}

// forgedNames are of another issuer or for another audience.
func (p *Provider) forgedNames() []claimForgery {
	return []claimForgery{
		{Issuer, "another provider", map[string]any{"iss": "https://id.example.com"}},
		{Issuer, "the issuer with a slash more", map[string]any{"iss": p.Issuer() + "/"}},
		{Issuer, "the issuer in capitals", map[string]any{"iss": strings.ToUpper(p.Issuer())}},
		{Issuer, "the issuer with something after it", map[string]any{"iss": p.Issuer() + ".example.com"}},
		{Issuer, "a list of issuers", map[string]any{"iss": []string{p.Issuer()}}},
		{Issuer, "the start of the issuer", map[string]any{"iss": p.Issuer()[:len(p.Issuer())-1]}},
		{Issuer, "the issuer without its port", map[string]any{"iss": "http://127.0.0.1"}},
		{Issuer, "the issuer under another scheme", map[string]any{"iss": strings.Replace(p.Issuer(), "http:", "https:", 1)}},
		{Issuer, "the issuer and white space", map[string]any{"iss": p.Issuer() + " "}},
		{Issuer, "an empty issuer", map[string]any{"iss": ""}},
		{Issuer, "no issuer", map[string]any{"iss": nil}},
		{ForAnother, "another audience", map[string]any{"aud": "https://elsewhere.example"}},
		{ForAnother, "a list of other audiences", map[string]any{"aud": []string{"https://elsewhere.example", "x"}}},
		{ForAnother, "the audience with something after it", map[string]any{"aud": Audience + ".example.com"}},
		{ForAnother, "the start of the audience", map[string]any{"aud": Audience[:len(Audience)-1]}},
		{ForAnother, "the audience with a slash more", map[string]any{"aud": Audience + "/"}},
		{ForAnother, "the audience in capitals", map[string]any{"aud": strings.ToUpper(Audience)}},
		{ForAnother, "the audience as one word of a text", map[string]any{"aud": "https://elsewhere.example " + Audience}},
		{ForAnother, "the audience after a comma", map[string]any{"aud": "https://elsewhere.example," + Audience}},
		{ForAnother, "the audience as the name of a member", map[string]any{"aud": map[string]any{Audience: true}}},
		{ForAnother, "the audience in the query of another one", map[string]any{"aud": "https://elsewhere.example/?" + Audience}},
		{ForAnother, "the audience with a query", map[string]any{"aud": Audience + "?x=1"}},
		{ForAnother, "the audience with a fragment", map[string]any{"aud": Audience + "#x"}},
		{ForAnother, "the audience with its port", map[string]any{"aud": strings.Replace(Audience, ".example/", ".example:443/", 1)}},
		{ForAnother, "the audience with an escape", map[string]any{"aud": strings.Replace(Audience, "/mcp", "/%6Dcp", 1)}},
		{ForAnother, "an empty audience", map[string]any{"aud": ""}},
		{ForAnother, "any audience by a star", map[string]any{"aud": "*"}},
		{ForAnother, "the audience as the authorized party", map[string]any{"aud": "x", "azp": Audience, "client_id": Audience}},
		{ForAnother, "the audience in a nested list", map[string]any{"aud": [][]string{{Audience}}}},
		{ForAnother, "an empty list of audiences", map[string]any{"aud": []string{}}},
		{ForAnother, "no audience", map[string]any{"aud": nil}},
	}
}

// forgedSignatures say everything right and are not signed by the provider's signing key.
func (p *Provider) forgedSignatures() []draft {
	key, kid := p.key()
	forged := func(changes map[string]any) func() string {
		return func() string { return compact(changed(header(kid), changes), p.Claims(), rs256(p.keys.forger)) }
	}
	own := map[string]any{"keys": []any{jwkOf(p.keys.forger, "forger", "sig")}}
	signature := map[string]func() string{
		"another key under the provider's key id": forged(nil),
		"another key and no key id":               forged(map[string]any{"kid": nil}),
		"another key and a key id nobody has":     forged(map[string]any{"kid": "forger"}),
		"a key id that is a path":                 forged(map[string]any{"kid": "../../../dev/null"}),
		"a key id that is a query":                forged(map[string]any{"kid": "x' OR '1'='1"}),
		"a key that the header brings":            forged(map[string]any{"kid": "forger", "jwk": jwkOf(p.keys.forger, "forger", "sig")}),
		"a key set that the header names":         forged(map[string]any{"kid": "forger", "jku": "data:application/json," + encodeJSON(own)}),
		"a certificate that the header names":     forged(map[string]any{"kid": "forger", "x5u": "https://elsewhere.example/cert.pem"}),
		"the provider's key that is not to sign": func() string {
			return compact(header("encryption"), p.Claims(), rs256(p.keys.encryption))
		},
		"that key under the signing key's id":      func() string { return compact(header(kid), p.Claims(), rs256(p.keys.encryption)) },
		"a signature with padding that is not RSA": func() string { return compact(header(kid), p.Claims(), pss(key)) },
	}
	return append(sorted(Signature, signature), p.patchedTokens()...)
}

// patchedTokens are good tokens in which something was exchanged or cut off.
func (p *Provider) patchedTokens() []draft {
	_, kid := p.key()
	patched := func(patch func(head, claims, signature string) string) func() string {
		return func() string {
			parts := strings.Split(p.Token(), ".")
			return patch(parts[0], parts[1], parts[2])
		}
	}
	other := func() []string { return strings.Split(p.Token(map[string]any{"sub": "user_mallory"}), ".") }
	signature := map[string]func() string{
		"the signature of another token": patched(func(h, c, _ string) string { return h + "." + c + "." + other()[2] }),
		"the claims of another token":    patched(func(h, _, s string) string { return h + "." + other()[1] + "." + s }),
		"another header than the signed one": patched(func(_, c, s string) string {
			return encodeJSON(map[string]any{"alg": "RS256", "kid": kid}) + "." + c + "." + s
		}),
		"a bit of the signature flipped": patched(func(h, c, s string) string {
			raw := decode(s)
			raw[10] ^= 1
			return h + "." + c + "." + encode(raw)
		}),
		"half of the signature": patched(func(h, c, s string) string { return h + "." + c + "." + encode(decode(s)[:128]) }),
		"a signature of zeros":  patched(func(h, c, _ string) string { return h + "." + c + "." + encode(make([]byte, 256)) }),
	}
	form := map[string]func() string{
		"no signature":              patched(func(h, c, _ string) string { return h + "." + c + "." }),
		"no third part":             patched(func(h, c, _ string) string { return h + "." + c }),
		"a fourth part":             patched(func(h, c, s string) string { return h + "." + c + "." + s + "." + s }),
		"the word Bearer before it": patched(func(h, c, s string) string { return "Bearer " + h + "." + c + "." + s }),
		"white space before it":     patched(func(h, c, s string) string { return " " + h + "." + c + "." + s }),
		"white space after it":      patched(func(h, c, s string) string { return h + "." + c + "." + s + " " }),
		"a line end in it":          patched(func(h, c, s string) string { return h + "." + c + "." + s[:8] + "\n" + s[8:] }),
		"padding at its end":        patched(func(h, c, s string) string { return h + "." + c + "." + s + "==" }),
		"other spare bits at the end of its signature": patched(func(h, c, s string) string {
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
			return h + "." + c + "." + s[:len(s)-1] + alphabet[strings.IndexByte(alphabet, s[len(s)-1])|1:][:1] // 4 bits of the last character mean nothing
		}),
		"quotes around it":        patched(func(h, c, s string) string { return `"` + h + "." + c + "." + s + `"` }),
		"a second token after it": patched(func(h, c, s string) string { return h + "." + c + "." + s + "," + h + "." + c + "." + s }),
		"five parts":              patched(func(h, c, s string) string { return h + "." + c + "." + s + "." + s + "." + s }),
		"the JSON serialization": patched(func(h, c, s string) string {
			return `{"payload":"` + c + `","protected":"` + h + `","signature":"` + s + `"}`
		}),
	}
	return append(sorted(Signature, signature), sorted(Form, form)...)
}

// changed is a header with changes; nil takes a member away.
func changed(header, changes map[string]any) map[string]any {
	maps.Copy(header, changes)
	maps.DeleteFunc(header, func(_ string, value any) bool { return value == nil })
	return header
}

func sorted(clause Clause, tokens map[string]func() string) []draft {
	var all []draft
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		all = append(all, draft{clause, name, tokens[name]})
	}
	return all
}
