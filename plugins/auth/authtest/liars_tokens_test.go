package authtest_test

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// verdictLies returns lies about single tokens.
func verdictLies() map[string]func(*right) {
	alg := func(is func(string) bool) func(*right) {
		return believes("algorithm is", func(h, _ map[string]any) bool { return is(text(h, "alg")) })
	}
	claim := func(reason, name string, is func(string) bool) func(*right) {
		return believes(reason, func(_, c map[string]any) bool { return is(text(c, name)) })
	}
	number := func(c map[string]any, name string) float64 { n, _ := c[name].(float64); return n }
	has := func(name string) func(string) bool { return func(s string) bool { return strings.HasPrefix(s, name) } }
	return map[string]func(*right){
		"skips keys without a use":                         refusesKeys(func(own, _ map[string]any) bool { return own["use"] != "sig" }),
		"uses the last of several keys with the same id":   refusesKeys(func(_, last map[string]any) bool { return last["kty"] != "RSA" }),
		"returns the jti of a token as its session":        answers(func(id *auth.Identity, claims map[string]any) { id.SessionID = text(claims, "jti") }),
		"accepts the algorithm none in any spelling":       alg(func(s string) bool { return s == "None" || s == "NONE" || s == "nOnE" }),
		"accepts the algorithm none with a trailing space": alg(func(s string) bool { return s == "none " }),
		"accepts HMAC with the public key":                 alg(has("HS256")),
		"accepts algorithms in lower case":                 alg(has("rs256")),
		"accepts RS512 without listing it":                 alg(has("RS512")),
		"does not check signatures without a key id":       believes("no key \"\"", always),
		"trusts the key in a header":                       believes("no key", func(h, _ map[string]any) bool { return h["jwk"] != nil }),
		"fetches keys from the address in a header": believes("no key", func(h, _ map[string]any) bool {
			_, _, err := get(context.Background(), text(h, "jku"))
			return err == nil
		}),
		"trusts the certificate in a header": believes("no key", func(h, _ map[string]any) bool {
			chain, _ := h["x5c"].([]any)
			raw, _ := base64.StdEncoding.DecodeString(fmt.Sprint(append(chain, "")[0]))
			_, err := x509.ParseCertificate(raw)
			return err == nil
		}),
		"compares only the hosts of issuers": believes("from the issuer", func(_, c map[string]any) bool {
			u, err := url.Parse(text(c, "iss"))
			return err == nil && u.Port() != "" && u.Path == ""
		}),
		"stores exp in 64 bits": believes("exp is out of range", func(_, c map[string]any) bool { return number(c, "exp") > 1<<64 && number(c, "exp") < 1<<65 }),
		"fails for dates after the year 9999": verifies(after(func(c *verifying) {
			if number(claimsOf(c.req.Token), "exp") == 253402300799 {
				c.err = errors.New("date value out of range")
			}
		})),
		"fails for claims that are not an object": verifies(after(func(c *verifying) {
			if raw, _ := base64.RawURLEncoding.DecodeString(piece(c.req.Token, 1)); part(c.req.Token, 0) != nil && string(raw) == "null" {
				c.err = errors.New("null has no members")
			}
		})),
		"refuses tokens over 15 KiB":   refuses(func(r auth.VerifyRequest, _, _ map[string]any) bool { return len(r.Token) > 15<<10 }),
		"ignores padding of all parts": rewrites(func(t string) string { return strings.ReplaceAll(t, "=", "") }),
		"truncates subjects at a NUL":  answers(func(id *auth.Identity, _ map[string]any) { id.Subject, _, _ = strings.Cut(id.Subject, "\x00") }),
		"lower-cases scopes": answers(func(id *auth.Identity, _ map[string]any) {
			id.Scopes = strings.Fields(strings.ToLower(strings.Join(id.Scopes, " ")))
		}),
		"joins groups with commas": answers(func(id *auth.Identity, _ map[string]any) {
			if id.Groups != nil {
				id.Groups = strings.Split(strings.Join(id.Groups, ","), ",")
			}
		}),
		"keeps at most 200 groups":                        answers(func(id *auth.Identity, _ map[string]any) { id.Groups = id.Groups[:min(200, len(id.Groups))] }),
		"accepts signatures of any key":                   believes("signature is not", always),
		"compares only the start of issuers":              claim("from the issuer", "iss", has("http://127.0.0.1")),
		"ignores the case of issuers":                     claim("from the issuer", "iss", has("HTTP://127")),
		"accepts any issuer":                              believes("from the issuer", always),
		"accepts an audience that contains the right one": claim("another audience", "aud", func(s string) bool { return strings.Contains(s, ".example/mcp") && len(s) > 28 }),
		"treats the authorized party as an audience":      believes("another audience", func(_, c map[string]any) bool { return strings.HasSuffix(text(c, "azp"), "/mcp") }),
		"treats an object as a list of audiences":         believes("another audience", func(_, c map[string]any) bool { _, ok := c["aud"].(map[string]any); return ok }),
		"treats a star as every audience":                 claim("another audience", "aud", func(s string) bool { return s == "*" }),
		"checks only the first audience of a token": refuses(func(_ auth.VerifyRequest, _, c map[string]any) bool {
			l, ok := c["aud"].([]any)
			return ok && len(l) > 0 && l[0] == "x"
		}),
		"requires an audience in every request":    refuses(func(r auth.VerifyRequest, _, _ map[string]any) bool { return len(r.Audiences) == 0 }),
		"accepts an expiry that is a string":       believes("exp", func(_, c map[string]any) bool { return text(c, "exp") != "" }),
		"does not require an expiry":               believes("no expiry", always),
		"ignores nbf":                              believes("(nbf)", always),
		"ignores iat":                              believes("(iat)", always),
		"allows a minute after exp":                believes("expired", func(_, c map[string]any) bool { return off(c, "exp") > -60 }),
		"allows no clock skew after exp":           refuses(func(_ auth.VerifyRequest, _, c map[string]any) bool { return off(c, "exp") < -1 }),
		"lower-cases subjects":                     answers(func(id *auth.Identity, _ map[string]any) { id.Subject = strings.ToLower(id.Subject) }),
		"truncates subjects to 64 bytes":           answers(func(id *auth.Identity, _ map[string]any) { id.Subject = id.Subject[:min(64, len(id.Subject))] }),
		"does not require a subject":               believes("no subject", always),
		"compares only the start of organizations": claim("another organization", "org_id", func(s string) bool { return len(s) > 4 && strings.HasPrefix(s, "org_") && s != "org_other" }),
		"ignores the case of organizations":        claim("another organization", "org_id", has("ORG_")),
		"treats superowner as owner": answers(func(id *auth.Identity, c map[string]any) {
			if strings.HasSuffix(text(c, "role"), "owner") {
				id.OrgRole = "owner"
			}
		}),
		"uses roles from another claim": answers(func(id *auth.Identity, c map[string]any) {
			if l, ok := c["roles"].([]any); ok && len(l) > 0 {
				id.OrgRole, _ = l[0].(string)
			}
		}),
		"makes members admins": answers(func(id *auth.Identity, _ map[string]any) {
			id.OrgRole = strings.Replace(id.OrgRole, "member", "admin", 1)
		}),
		"uses the email address from another claim": answers(func(id *auth.Identity, c map[string]any) {
			if id.Email == "" {
				id.Email = text(c, "preferred_username")
			}
		}),
		"returns unverified email addresses": answers(func(id *auth.Identity, c map[string]any) { id.Email = text(c, "email") }),
		"lower-cases email addresses":        answers(func(id *auth.Identity, _ map[string]any) { id.Email = strings.ToLower(id.Email) }),
		"grants the admin scope":             answers(func(id *auth.Identity, _ map[string]any) { id.Scopes = append(slices.Clone(id.Scopes), "admin") }),
		"returns only one of several groups": answers(func(id *auth.Identity, _ map[string]any) { id.Groups = id.Groups[:min(1, len(id.Groups))] }),
		"returns an empty list of groups for a token without groups": answers(func(id *auth.Identity, _ map[string]any) {
			if id.Groups == nil {
				id.Groups = []string{}
			}
		}),
		"adds the clock skew to expiries":                   answers(func(id *auth.Identity, _ map[string]any) { id.ExpiresAt = id.ExpiresAt.Add(30 * time.Second) }),
		"rounds numbers in claims":                          answers(func(id *auth.Identity, c map[string]any) { id.Claims, _ = json.Marshal(c) }),
		"ignores critical headers":                          believes("critical headers", always),
		"ignores the type of a token":                       believes("not a JWT", always),
		"ignores the binding of a token":                    believes("(cnf)", always),
		"strips the word Bearer":                            rewrites(func(t string) string { return strings.TrimPrefix(t, "Bearer ") }),
		"trims tokens":                                      rewrites(strings.TrimSpace),
		"ignores padding":                                   rewrites(func(t string) string { return strings.TrimRight(t, "=") }),
		"verifies the first of several tokens":              rewrites(func(t string) string { first, _, _ := strings.Cut(t, ","); return first }),
		"ignores the case of claim names":                   believes("no subject", func(_, c map[string]any) bool { return text(c, "Sub") != "" }),
		"refuses tokens over 2 KiB":                         refuses(func(r auth.VerifyRequest, _, _ map[string]any) bool { return len(r.Token) > 2<<10 }),
		"refuses at+jwt":                                    refuses(func(_ auth.VerifyRequest, h, _ map[string]any) bool { return text(h, "typ") == "at+jwt" }),
		"requires iat":                                      refuses(func(_ auth.VerifyRequest, _, c map[string]any) bool { return c["iat"] == nil }),
		"caches verdicts by the claims of a token":          remembers(time.Minute, func(c *verifying) string { return piece(c.req.Token, 1) }),
		"caches verdicts by the signature of a token":       remembers(time.Minute, func(c *verifying) string { return piece(c.req.Token, 2) }),
		"caches verdicts by the first 400 bytes of a token": remembers(time.Minute, func(c *verifying) string { return c.req.Token[:min(len(c.req.Token), 400)] }),
		"caches verdicts regardless of the audience":        remembers(time.Minute, func(c *verifying) string { return c.req.Token }),
		"fails for text that is not a token": verifies(func(c *verifying) {
			if c.ask(); strings.Count(c.req.Token, ".") != 2 {
				c.err = errors.New("index out of range")
			}
		}),
		"logs the tokens that it refuses": verifies(after(func(c *verifying) {
			if c.err != nil {
				_, _ = io.WriteString(c.out, "refused "+c.req.Token+"\n")
			}
		})),
		"repeats the claims in errors": verifies(after(func(c *verifying) {
			if c.err != nil {
				c.err = errors.Join(c.err, errors.New(piece(c.req.Token, 1)))
			}
		})),
	}
}

// crowdLies returns adapters that mix people up.
func crowdLies() map[string]func(*right) {
	shared := func(mix func(own *auth.Identity, other auth.Identity)) func(*right) {
		return func(r *right) {
			var last atomic.Value
			r.verify = after(func(c *verifying) {
				if c.err == nil {
					last.Store(c.got)
					runtime.Gosched()
					mix(&c.got, last.Load().(auth.Identity))
				}
			})
		}
	}
	return map[string]func(*right){
		"shares the claims of a token between calls": shared(func(own *auth.Identity, other auth.Identity) { *own = other }),
		"shares the email address between calls":     shared(func(own *auth.Identity, other auth.Identity) { own.Email = other.Email }),
		"shares the role between calls":              shared(func(own *auth.Identity, other auth.Identity) { own.OrgRole = other.OrgRole }),
		"shares the name between calls":              shared(func(own *auth.Identity, other auth.Identity) { own.DisplayName = other.DisplayName }),
		"identifies people by the first bytes of a subject": remembers(time.Minute, func(c *verifying) string {
			sub := text(claimsOf(c.req.Token), "sub")
			return sub[:min(6, len(sub))]
		}),
		"caches verdicts by jti": remembers(time.Minute, func(c *verifying) string { return cmp.Or(text(claimsOf(c.req.Token), "jti"), c.req.Token) }),
		"rejects calls while others are in progress": func(r *right) {
			busy := make(chan struct{}, 2)
			r.verify = func(c *verifying) {
				select {
				case busy <- struct{}{}:
				default:
					c.err = plugins.ErrUnavailable
					return
				}
				defer func() { <-busy }()
				runtime.Gosched()
				c.ask()
			}
		},
	}
}

func clockLies() map[string]func(*right) {
	exact := func(c *verifying) string { return c.req.Token + strings.Join(c.req.Audiences, " ") }
	return map[string]func(*right){
		"caches verdicts for a minute":                    remembers(time.Minute, exact),
		"remembers refusals":                              remembersRefusals,
		"allows four seconds too many after exp":          believes("expired", func(_, c map[string]any) bool { return off(c, "exp") > -34.5 }),
		"allows ten seconds too few after exp":            refuses(func(_ auth.VerifyRequest, _, c map[string]any) bool { return off(c, "exp") < -20 }),
		"allows three seconds too many before nbf or iat": believes("not valid yet", func(_, c map[string]any) bool { return max(off(c, "nbf"), off(c, "iat")) < 34 }),
	}
}

// refusesKeys refuses good tokens if wrong returns true. wrong gets the RSA key with the token's key id, and
// the last key with that id.
func refusesKeys(wrong func(own, last map[string]any) bool) func(*right) {
	return func(r *right) {
		refuses(func(_ auth.VerifyRequest, header, _ map[string]any) bool {
			var own, last map[string]any
			var set struct{ Keys []map[string]any }
			_, body, _ := get(context.Background(), keysAddress(r.p))
			_ = json.Unmarshal(body, &set)
			for _, key := range set.Keys {
				if key["kid"] != header["kid"] {
					continue
				}
				if last = key; key["kty"] == "RSA" {
					own = key
				}
			}
			return own != nil && wrong(own, last)
		})(r)
	}
}

// get reads a document of the provider, or the start of it.
func get(ctx context.Context, address string) (header http.Header, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, errors.New(resp.Status)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.Header, body, err
}

func keysAddress(p *authtest.Provider) string { return p.Issuer() + "/oauth2/jwks/" + p.Organization }
