package authtest

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// draft is an unsigned token, and the audiences of the request that carries it.
type draft struct {
	header, claims map[string]any
	by             *signer                   // signs the token
	seal           func(input []byte) []byte // makes the signature instead of by; may be nil
	spell          func(string) string       // changes the finished text
	audiences      []string
	name           string // of the chosen values
}

func (d *draft) token() string {
	seal := d.seal
	if seal == nil {
		algorithm, _ := d.header["alg"].(string)
		if hashOf(algorithm) == 0 || strings.HasPrefix(algorithm, "HS") {
			algorithm = d.by.algorithm()
		}
		seal = func(in []byte) []byte { return d.by.sign(algorithm, in) }
	}
	return d.spell(compact(changed(d.header), changed(d.claims), seal))
}

// value is one value of a property. A property is a list of values; the first is the valid default.
type value struct {
	name string
	set  func(*draft)
}

type property struct {
	name   string
	values []value
}

// claimed returns a property with values for one claim. A nil value removes the claim.
func claimed(claim string, values ...any) property {
	p := property{name: claim}
	for _, v := range values {
		p.values = append(p.values, value{claim + " " + show(v), func(d *draft) { d.claims[claim] = v }})
	}
	return p
}

// show returns a value as JSON, truncated.
func show(v any) string {
	if v == nil {
		return "absent"
	}
	return clip(string(must(json.Marshal(v))), 60)
}

func headed(member string, values ...any) property {
	p := property{name: member}
	for _, v := range values {
		p.values = append(p.values, value{member + " " + show(v), func(d *draft) { d.header[member] = v }})
	}
	return p
}

func (p *property) add(name string, set func(*draft)) {
	p.values = append(p.values, value{name, set})
}

// idTable returns the properties that id tokens are made of.
func (p *Provider) idTable() []property {
	nonce := property{name: "nonce"}
	nonce.add("the nonce of the login", func(*draft) {})
	for name, change := range sortedPairs(map[string]func(string) any{
		"no nonce": func(string) any { return nil }, "an empty nonce": func(string) any { return "" }, "the start of the nonce": func(own string) any { return own[:max(0, len(own)-1)] }, "more than the nonce": func(own string) any { return own + "x" },
		"the nonce in small letters": func(own string) any { return strings.ToLower(own) + "a" }, "the nonce in a list": func(own string) any { return []string{own} }, "another nonce": func(string) any { return "another" },
	}) {
		nonce.add(name, func(d *draft) {
			own, _ := d.claims["nonce"].(string)
			d.claims["nonce"] = change(own)
		})
	}
	return []property{
		p.algorithms(), p.signatures(), p.types(), p.headers(), p.issuers(), audiences(p.ClientID, p.Audience), times("exp"), times("nbf"), times("iat"), subjects(), p.organizations(), p.others(), claimed("azp", nil, p.ClientID, "another", p.ClientID+"2", ""), nonce, spellings(),
	}
}

// logoutTable returns the properties that logout tokens are made of.
func (p *Provider) logoutTable() []property {
	typ := p.types()
	typ.values = append([]value{{"typ logout+jwt", func(d *draft) { d.header["typ"] = "logout+jwt" }}}, typ.values...)
	event := map[string]any{}
	more := map[string]any{logoutEvent: event, "https://example.com/event": event}
	events := claimed("events", map[string]any{logoutEvent: event}, more, nil, map[string]any{}, map[string]any{"https://example.com/event": event}, map[string]any{logoutEvent: true}, map[string]any{logoutEvent: nil}, []string{logoutEvent}, logoutEvent, null)
	about := property{name: "about"}
	about.add("a subject and a session", func(*draft) {})
	for _, v := range [][2]any{{"auth0|é/用户", "s&=%20 +é"}, {nil, "session_1"}, {"user_1", nil}, {"User_1 ", nil}, {nil, nil}, {"", ""}, {null, null}, {7, nil}, {nil, []string{"s"}}} {
		about.add(fmt.Sprintf("sub %s, sid %s", show(v[0]), show(v[1])), func(d *draft) { d.claims["sub"], d.claims["sid"] = v[0], v[1] })
	}
	jti := claimed("jti", nil, "", 7, null)
	jti.values = append([]value{{"a jti", func(*draft) {}}}, jti.values...)
	exp := times("exp")
	exp.values = append(exp.values[1:2], slices.DeleteFunc(exp.values[2:], func(v value) bool { // the contract leaves an exp in the far future to the adapter
		return slices.Contains([]string{"exp 10807 s from now", "exp 90000 s from now", "exp 34560000 s from now", "exp with an exponent", "exp in the year 9999"}, v.name)
	})...)
	iat := times("iat")
	iat.values = slices.DeleteFunc(iat.values, func(v value) bool {
		return slices.Contains([]string{"iat -315360000 s from now", "iat with an exponent", "iat 0", "iat a negative number"}, v.name)
	})
	return []property{p.algorithms(), p.signatures(), typ, p.headers(), p.issuers(), audiences(p.ClientID, p.Audience), exp, iat, events, about, jti, claimed("nonce", nil, "n", "", null), spellings()}
}

// null is a JSON null. A nil value removes the member instead.
var null = json.RawMessage("null") //nolint:gochecknoglobals // a constant

// draft returns the valid token that the values in the table change.
func (p *Provider) draft() *draft {
	s := p.signer()
	return &draft{
		header: map[string]any{"alg": "RS256", "typ": "JWT", "kid": s.kid}, claims: p.Claims(), by: s,
		spell: func(text string) string { return text }, audiences: []string{"https://other.example", p.Audience},
	}
}

// Indexes of properties in the table.
const organizationAt, roleAt = 11, 12

// table returns all properties that access tokens are made of.
func (p *Provider) table() []property {
	return []property{
		p.algorithms(), p.signatures(), p.types(), p.headers(), p.issuers(), audiences(p.Audience, p.ClientID), p.requests(), times("exp"), times("nbf"), times("iat"),
		subjects(), p.organizations(), p.roles(), p.emails(), p.scopes(), p.bindings(), p.others(), spellings(),
	}
}

func (p *Provider) algorithms() property {
	own := p.signer()
	der := must(x509.MarshalPKIXPublicKey(own.key.Public()))
	all := property{name: "alg"}
	all.add("alg RS256", func(*draft) {})
	for _, s := range p.ever {
		if s.signs() && s != own {
			all.add("alg "+s.algorithm()+" signed with the provider's key for it", func(d *draft) { d.header["alg"], d.header["kid"], d.by = s.algorithm(), s.kid, s })
		}
	}
	for _, s := range []*signer{{"", "", p.keys.otherCurve}, {"", "", p.keys.otherEd}} {
		all.add("alg "+s.algorithm()+" signed with another key", func(d *draft) { d.header["alg"], d.by = s.algorithm(), s })
	}
	for _, name := range []string{"none", "None", "NONE", "nOnE", "none "} {
		all.add("alg "+name+" without a signature", func(d *draft) { d.header["alg"], d.seal = name, func([]byte) []byte { return nil } })
		all.add("alg "+name+" with a byte", func(d *draft) { d.header["alg"], d.seal = name, func([]byte) []byte { return []byte{0} } })
		all.add("alg "+name+" with a valid signature", func(d *draft) { d.header["alg"] = name })
	}
	for _, name := range []any{"", nil, null, 7, []string{"RS256"}, "rs256", "Rs256", " RS256", "RS256 ", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256K", "EdDSA", "RSA", "SHA256"} {
		all.add(fmt.Sprintf("alg %v with a valid signature", name), func(d *draft) { d.header["alg"] = name })
	}
	all.add("Alg in another case", func(d *draft) { d.header["alg"], d.header["Alg"] = nil, "RS256" })
	all.add("RS256 over PSS", func(d *draft) { d.seal = func(in []byte) []byte { return own.sign("PS256", in) } })
	secrets := map[string][]byte{
		"the public key in PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "the public key in DER": der, "the modulus": decode(own.jwk()["n"].(string)),
		"the public key as JWK": must(json.Marshal(own.jwk())), "nothing": nil, "the client id": []byte(p.ClientID), "the key id": []byte(own.kid), "the client secret": []byte(p.ClientSecret),
	}
	for _, name := range []string{"HS256", "HS384", "HS512", "hs256"} {
		for what, secret := range sortedPairs(secrets) {
			all.add("alg "+name+" with "+what, func(d *draft) {
				d.header["alg"], d.seal = name, func(in []byte) []byte { return hmacWith(hashOf(strings.ToUpper(name)), secret, in) }
			})
		}
	}
	return all
}

// signatures returns values for who signed the token, and for what its header says about the key.
func (p *Provider) signatures() property {
	all := property{name: "signature"}
	all.add("the provider's signature", func(*draft) {})
	forger := &signer{"", "sig", p.keys.forger}
	forged := func(name string, head map[string]any) {
		all.add("somebody else's signature, "+name, func(d *draft) { maps.Copy(d.header, head); d.by = forger })
	}
	forged("under the provider's key id", nil)
	for name, kid := range sortedPairs(map[string]any{"no key id": nil, "an unknown key id": "forger", "an empty key id": "", "a path as key id": "../../../dev/null", "a query as key id": "x' OR '1'='1", "a number as key id": 7, "a long key id": strings.Repeat("k", 2000)}) {
		forged(name, map[string]any{"kid": kid})
	}
	forged("a key in its header", map[string]any{"kid": "forger", "jwk": forger.jwk()})
	forged("a key in its header under the provider's key id", map[string]any{"jwk": (&signer{p.signer().kid, "sig", p.keys.forger}).jwk()})
	forged("a key set in its header", map[string]any{"kid": "forger", "jku": p.Issuer() + strangePath})
	forged("a certificate in its header", map[string]any{"kid": "forger", "x5c": []string{base64.StdEncoding.EncodeToString(p.keys.certificate())}})
	for _, s := range p.ever {
		if s.use == "enc" {
			all.add("a signature made with a key that is not for signatures", func(d *draft) { d.header["kid"], d.by = s.kid, s })
			all.add("such a signature under the signing key's id", func(d *draft) { d.by = s })
		}
	}
	all.add("the provider's signature without a key id", func(d *draft) { d.header["kid"] = nil })
	all.add("the provider's signature and an unknown key id", func(d *draft) { d.header["kid"] = "nobody" })
	patch := func(name string, change func([]byte) []byte) {
		all.add(name, func(d *draft) {
			by := d.by
			d.seal = func(in []byte) []byte { return change(by.sign(by.algorithm(), in)) }
		})
	}
	for at, name := range []string{"first", "tenth"} {
		patch("the signature with its "+name+" byte changed", func(b []byte) []byte { b[at*9] ^= 1; return b })
	}
	patch("the signature with its last byte changed", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	patch("half of the signature", func(b []byte) []byte { return b[:len(b)/2] })
	patch("the signature twice", func(b []byte) []byte { return append(b, b...) })
	patch("a signature of zeros", func(b []byte) []byte { return make([]byte, len(b)) })
	patch("an empty signature", func([]byte) []byte { return nil })
	patch("the signature of another token", func([]byte) []byte { return readJWS(p.Token(map[string]any{"sub": "user_mallory"})).sig })
	return all
}

func (p *Provider) types() property {
	return headed("typ", "JWT", nil, "jwt", "at+jwt", "application/at+jwt", "AT+JWT", "logout+jwt", "dpop+jwt", "secevent+jwt", "refresh+jwt", "", 7, []string{"JWT"}, "JWTX", "J")
}

func (p *Provider) headers() property {
	all := property{name: "header"}
	all.add("no additional header", func(*draft) {})
	for name, more := range sortedPairs(map[string]map[string]any{
		"a note": {"x-note": "text"}, "a large note": {"x-note": strings.Repeat("n", 3000)}, "cty": {"cty": "at+jwt"}, "an x5t": {"x5t": "x", "x5t#S256": "x"}, "a claim": {"exp": 1, "iss": "x", "sub": "nobody"},
		"critical exp": {"crit": []string{"exp"}, "exp": 1}, "critical b64": {"crit": []string{"b64"}, "b64": false}, "critical and unknown": {"crit": []string{"x-unknown"}, "x-unknown": 1}, "critical and missing": {"crit": []string{"x-missing"}}, "critical as text": {"crit": "exp"},
	}) {
		all.add("header with "+name, func(d *draft) { maps.Copy(d.header, more) })
	}
	return all
}

// nearly returns values that resemble a name.
func nearly(name string) []any {
	return []any{
		name + "/", name + ".example.com", name + "2", name[:len(name)-1], strings.ToUpper(name), name + " ", " " + name, name + "\n", name + "\x00", name + "?x=1", name + "#x", name + "%20",
		"https://elsewhere.example/?" + name, "https://elsewhere.example " + name, "https://elsewhere.example," + name, map[string]any{name: true}, [][]string{{name}}, "", "*", null, nil, 7, true,
	}
}

func (p *Provider) issuers() property {
	iss := p.Issuer()
	return claimed("iss", append([]any{
		iss, "https://id.example.com", []string{iss}, strings.Replace(iss, "http:", "https:", 1), "http://127.0.0.1", "http://" + p.address, strings.Replace(iss, "127.0.0.1", "localhost", 1), iss + "0", "http://user@" + p.address + p.path,
	}, nearly(iss)...)...)
}

// audiences returns values for the aud claim that contain or resemble aud. other is an audience that the adapter also
// knows.
func audiences(aud, other string) property {
	all := claimed("aud", append([]any{
		[]string{aud}, aud, []string{aud, "x"}, []string{"x", aud}, []string{"x", "y", aud, "z"}, "https://elsewhere.example", []string{"https://elsewhere.example", "x"}, []string{}, other,
		[]string{aud + "2", aud[:len(aud)-1]}, []any{7, true}, strings.Replace(aud, ".example/", ".example:443/", 1), strings.Replace(aud, "/mcp", "/%6Dcp", 1), strings.Replace(aud, "https:", "http:", 1), "https://other.example/",
	}, nearly(aud)...)...)
	all.add("aud as the authorized party alone", func(d *draft) { d.claims["aud"], d.claims["azp"], d.claims["client_id"] = "x", aud, aud })
	return all
}

func (p *Provider) requests() property {
	all := property{name: "audiences in the request"}
	for _, audiences := range [][]string{{"https://other.example", p.Audience}, {p.Audience}, {p.Audience, "x"}, {"x", "y", p.Audience, "z"}, nil, {"https://elsewhere.invalid"}, {p.Audience + "2"}, {p.Audience[:len(p.Audience)-1]}, {strings.ToUpper(p.Audience)}, {p.Audience + "/"}} {
		all.add(fmt.Sprintf("requested audiences %q", audiences), func(d *draft) { d.audiences = audiences })
	}
	return all
}

// times returns values for a time claim: around each of the contract's limits, and far from them.
func times(claim string) property {
	at := func(s int) func(*draft) { return func(d *draft) { d.claims[claim] = time.Now().Unix() + int64(s) } }
	all := property{name: claim}
	usual := map[string][]int{
		"exp": {600, 61, 10807, 90000, 400 * 86400, 5, -5, -20, -26, -33, -45, -90, -120, -3600, -86400},
		"nbf": {0, -60, -86400, 20, 26, 33, 45, 60, 90, 3600}, "iat": {0, -60, -3600, -10 * 365 * 86400, 20, 26, 33, 45, 60, 90, 3600},
	}[claim]
	if claim == "nbf" {
		all.add("no nbf", func(*draft) {})
	}
	for _, s := range usual {
		all.add(fmt.Sprintf("%s %d s from now", claim, s), at(s))
	}
	all.add(claim+" with a fraction", func(d *draft) {
		d.claims[claim] = float64(time.Now().Unix()) + map[bool]float64{true: 600.5, false: -60.5}[claim == "exp"]
	})
	all.add(claim+" with an exponent", func(d *draft) {
		d.claims[claim] = json.RawMessage(map[bool]string{true: "2.5e9", false: "1.5e9"}[claim == "exp"])
	})
	for name, v := range sortedPairs(map[string]any{
		"0": 0, "null": null, "true": true, "a text": "2099-01-01T00:00:00Z", "a number in text": strconv.FormatInt(time.Now().Unix()+3600, 10), "a past number in text": "1500000000", "a list": []int64{time.Now().Unix() + 3600},
		"an object": map[string]any{"seconds": time.Now().Unix() + 3600}, "1e300": 1e300, "milliseconds": (time.Now().Unix() + 3600) * 1000, "a negative number": -3600,
	}) {
		all.add(claim+" "+name, func(d *draft) { d.claims[claim] = v })
	}
	beyond := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(time.Now().Unix()))
	for name, v := range sortedPairs(map[string]string{"in the year 9999": "253402300799", "in the year 10000": "253402300800", "beyond 64 bits": beyond.Add(beyond, big.NewInt(600)).String()}) {
		all.add(claim+" "+name, func(d *draft) { d.claims[claim] = json.RawMessage(v) })
	}
	all.add("no "+claim, func(d *draft) { d.claims[claim] = nil })
	all.add(claim+" in another case", func(d *draft) {
		d.claims[claim], d.claims[strings.ToUpper(claim)], d.claims[strings.ToUpper(claim[:1])+claim[1:]] = nil, time.Now().Unix()+3600, time.Now().Unix()+3600
	})
	return all
}

func subjects() property {
	all := claimed("sub", "user_alice", "User_Alice", "user_alice ", " user_alice", "auth0|5f7c8ec7c33c6c004bbafe82", "a/b/../c", "mailto:a@example.com", "a%2Fb", "\u00e9", "e\u0301", "用户\u200b", "0", "007", "1e3", "null", `"quoted"`, "a,b c", "user_alice\x00🪢",
		strings.Repeat("s", 254)+"1", strings.Repeat("s", 254)+"2", strings.Repeat("s", 300), nil, "", 7, null, true, []string{"user_alice"}, map[string]any{"id": "user_alice"})
	all.add("sub in another case", func(d *draft) { d.claims["sub"], d.claims["SUB"], d.claims["Sub"] = nil, "user_alice", "user_alice" })
	all.add("sub under other names", func(d *draft) {
		d.claims["sub"], d.claims["uid"], d.claims["user_id"], d.claims["oid"], d.claims["username"] = nil, "u", "u", "u", "u"
	})
	return all
}

func (p *Provider) organizations() property {
	org := p.Organization
	all := claimed(organizationClaim, append([]any{org, []string{org}, []string{"org_x", org}, "org_other", []string{"org_other"}, []string{org + "2", "org_"}}, nearly(org)...)...)
	all.add("the organization in other claims", func(d *draft) {
		d.claims[organizationClaim], d.claims["organization"], d.claims["org"], d.claims["tenant"], d.claims["ORG_ID"] = "org_other", org, org, org, org
	})
	return all
}

func (p *Provider) roles() property {
	all := claimed(RoleClaim, nil, "member", "admin", "owner", []string{"owner"}, []string{"member", "admin"}, "superowner", "owner2", "own", "", "OWNER", " owner", "owner,admin", "root", "administrator", 7, true, null, map[string]any{"owner": true}, map[string]any{"admin": "owner"})
	for _, claim := range []string{"roles", "org_role", "groups", "permissions", "scope", "Role", "https://example.com/role", "realm_access"} {
		all.add("owner in "+claim, func(d *draft) {
			d.claims[claim] = map[string]any{"scope": "owner", "realm_access": map[string]any{"roles": []string{"owner"}}}[claim]
			if d.claims[claim] == nil {
				d.claims[claim] = []string{"owner"}
			}
		})
	}
	all.add("is_admin", func(d *draft) { d.claims["is_admin"], d.claims["admin"], d.claims["owner"] = true, true, true })
	return all
}

func (p *Provider) emails() property {
	all := claimed("email", "alice@example.com", "Alice@Example.COM", "alice+x@example.com", nil, null, "", 7, []string{"eve@example.com"})
	all.values = append(all.values, claimed("email_verified", false, "false", "true", nil, null, 0, 1, []string{}).values...)
	all.add("email under other names", func(d *draft) {
		d.claims["email"], d.claims["mail"], d.claims["upn"], d.claims["preferred_username"], d.claims["emails"] = nil, "eve@example.com", "eve@example.com", "eve@example.com", []string{"eve@example.com"}
	})
	all.add("no name", func(d *draft) { d.claims["name"] = nil })
	return all
}

func (p *Provider) scopes() property {
	all := claimed("scope", "openid profile", "openid", nil, "", "a:b,C c/d", 7, []string{"openid", "profile"})
	all.add("scp", func(d *draft) { d.claims["scope"], d.claims["scp"] = nil, []string{"read", "write"} })
	all.add("permissions", func(d *draft) {
		d.claims["scope"], d.claims["permissions"], d.claims["scopes"] = nil, []string{"admin"}, "admin"
	})
	return all
}

func (p *Provider) bindings() property {
	return claimed("cnf", nil, map[string]any{"x5t#S256": "x"}, map[string]any{"jkt": strings.Repeat("A", 43)}, map[string]any{"kid": "x"}, map[string]any{"jwk": map[string]any{"kty": "oct"}}, map[string]any{"jkt": ""}, "x", 7, []string{"x"}, map[string]any{"unknown": "x"})
}

// others returns claims that must make no difference.
func (p *Provider) others() property {
	all := property{name: "other claims"}
	many, nested, groups := map[string]any{}, any("end"), []string{}
	for i := range 60 {
		many[fmt.Sprintf("https://example.com/claim-%d", i)] = map[string]any{"list": []any{i, "text", nil, true}, "exp": 1, "sub": "nobody"}
	}
	for i := range 300 {
		groups = append(groups, fmt.Sprint("group-", i))
	}
	for range 40 {
		nested = map[string]any{"sub": "nobody", "in": []any{nested}}
	}
	for name, more := range sortedPairs(map[string]map[string]any{
		"no others": {}, "60 more claims": many, "claims 80 levels deep": {"nested": nested}, "a claim of 11 KiB": {"large": strings.Repeat("l", 11<<10)}, "a jti": {"jti": "1"}, "groups": {"groups": []string{"staff", "admins"}}, "a group": {"groups": "guests"}, "many groups": {"groups": groups}, "odd groups": {"groups": []string{"Staff, night", " é ", "/e\u0301"}}, "no texts": {"groups": []any{7}, "name": 7, "sid": []any{7}}, "a session": {"sid": "session_1"},
		"odd names": {"sub ": "eve", "Sub": "eve", "ſub": "eve", "": "eve", "__proto__": map[string]any{"sub": "eve"}, "constructor": 1}, "numbers": {"big": json.Number("12345678901234567890"), "small": json.Number("0.1"), "e": json.Number("1e2")}, "times of others": {"auth_time": 1, "updated_at": "x"}, "a nonce": {"nonce": "n", "at_hash": "x", "azp": "other"},
	}) {
		all.add(name, func(d *draft) { maps.Copy(d.claims, more) })
	}
	return all
}

// spellings returns changes to the text of a token.
func spellings() property {
	all := property{name: "spelling"}
	parts := func(change func(h, c, s string) string) func(string) string {
		return func(text string) string {
			if p := strings.Split(text, "."); len(p) == 3 {
				return change(p[0], p[1], p[2])
			}
			return text
		}
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	all.add("as it is", func(*draft) {})
	spelled := func(name string, spell func(string) string) {
		all.add("spelled with "+name, func(d *draft) { d.spell = spell })
	}
	for _, format := range []string{"Bearer %s", "bearer %s", " %s", "%s ", "%s\t", "%s\n", "%s=", "%s==", "%s\x00", `"%s"`, "<%s>", "%[1]s,%[1]s", "%[1]s %[1]s", "%s.", ".%s", "%sA", "\ufeff%s", "%s#x"} {
		spelled(fmt.Sprintf("%q", format), func(t string) string { return fmt.Sprintf(format, t) })
	}
	for _, format := range []string{"%[1]s.%[2]s.%[3]s.%[3]s", "%[1]s.%[2]s.%[3]s.%[3]s.%[3]s", "%[1]s.%[2]s", "%[2]s", ".%[2]s.%[3]s", "%[1]s=.%[2]s=.%[3]s=", "%[1]s. %[2]s.%[3]s", `{"payload":"%[2]s","protected":"%[1]s","signature":"%[3]s"}`} {
		spelled(fmt.Sprintf("%q", format), parts(func(h, c, s string) string { return fmt.Sprintf(format, h, c, s) }))
	}
	for name, spell := range sortedPairs(map[string]func(string) string{
		"a line break in it": func(t string) string { return t[:len(t)/2] + "\r\n" + t[len(t)/2:] }, "one character less": func(t string) string { return t[:len(t)-1] }, "its first half": func(t string) string { return t[:len(t)/2] },
		"capitals": strings.ToUpper, "small letters": strings.ToLower, "escaped dots": func(t string) string { return strings.ReplaceAll(t, ".", "%2E") }, "its digest": func(t string) string { return encode(hashed(crypto.SHA256, []byte(t))) },
		"a character changed": func(t string) string {
			return t[:len(t)/2] + map[bool]string{true: "B", false: "A"}[t[len(t)/2] == 'A'] + t[len(t)/2+1:]
		},
		"other spare bits": parts(func(h, c, s string) string {
			if s == "" {
				return ""
			}
			return h + "." + c + "." + s[:len(s)-1] + alphabet[strings.IndexByte(alphabet, s[len(s)-1])^1:][:1]
		}),
		"other base64": parts(func(h, c, s string) string {
			return h + "." + c + "." + strings.NewReplacer("-", "+", "_", "/").Replace(s)
		}),
	}) {
		spelled(name, spell)
	}
	return all
}

// malformed returns texts whose header or claims are not a JSON object, although the provider has signed them.
func (p *Provider) malformed() (all []string) {
	good := strings.Split(p.Token(), ".")
	for _, text := range []string{"null", "[]", "7", `"text"`, "{", "{}{}", p.Token()} {
		for _, input := range []string{good[0] + "." + encode([]byte(text)), encode([]byte(text)) + "." + good[1]} {
			all = append(all, input+"."+encode(p.signer().sign("RS256", []byte(input))))
		}
	}
	return all
}

// junk returns strings that clients without a token send.
func junk() []string {
	return []string{
		"", " ", ".", "..", "...", "null", "{}", "Bearer x", "undefined", "not-a-token-at-all", "eyJhbGciOiJub25lIn0.e30.", "a.b.c", "e30.e30.e30", "bnVsbA.bnVsbA.bnVsbA", strings.Repeat("x", 20_000), strings.Repeat(".", 5000), "\x00\x01",
		"ünïcödé-töken-öf-nöbödy", strings.Repeat("x", 30) + "'; DROP TABLE tokens; --", "%s%n%x", "../../../../etc/passwd", "*", "%", "_",
		encode([]byte(strings.Repeat("[", 10_000))) + ".e30.e30", "e30." + encode([]byte(strings.Repeat(`{"a":`, 10_000))) + ".e30",
	}
}
