package authtest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// exactLies are right about most tokens, most calls and most logins.
func exactLies() []lie {
	return slices.Concat(identityLies(), comparisonLies(), clockLies(), memoryLies(), providerLies(), loginLies())
}

func identityLies() []lie {
	const subject, expiry, plain, claims = "a subject comes back as the token has it, whatever characters it has", "a token has its own expiry, near or far", "a token needs no more than the contract says", "groups and claims are the token's own"
	subjects := func(change func(string) string) func(honest) auth.Adapter {
		return identities(func(_, id auth.Identity) auth.Identity { id.Subject = change(id.Subject); return id })
	}
	expiries := func(change func(time.Time) time.Time) func(honest) auth.Adapter {
		return identities(func(_, id auth.Identity) auth.Identity { id.ExpiresAt = change(id.ExpiresAt); return id })
	}
	wants := func(claim string) func(honest) auth.Adapter {
		return refuses(func(r auth.VerifyRequest) bool { _, ok := claimsOf(r.Token)[claim]; return !ok })
	}
	return []lie{
		{"lower-cases subjects", subject, subjects(strings.ToLower)},
		{"trims subjects", subject, subjects(strings.TrimSpace)},
		{"normalizes subjects", subject, subjects(func(s string) string { return strings.ReplaceAll(s, "e\u0301", "\u00e9") })},
		{"takes what follows the bar of a subject", subject, subjects(func(s string) string {
			_, after, found := strings.Cut(s, "|")
			return map[bool]string{true: after, false: s}[found]
		})},
		{"decodes percent signs of subjects", subject, subjects(func(s string) string {
			if plain, err := url.PathUnescape(s); err == nil {
				return plain
			}
			return s
		})},
		{"cuts subjects at 64 bytes", subject, subjects(func(s string) string { return s[:min(64, len(s))] })},
		{"reads subjects that are numbers as numbers", subject, subjects(func(s string) string {
			if n, err := strconv.Atoi(s); err == nil {
				return strconv.Itoa(n)
			}
			return s
		})},
		{"says that every token is good for ten minutes", expiry, expiries(func(time.Time) time.Time { return time.Now().Add(10 * time.Minute) })},
		{"says that no token is good for more than a day", expiry, expiries(func(at time.Time) time.Time {
			if day := time.Now().Add(24 * time.Hour); at.After(day) {
				return day
			}
			return at
		})},
		{"says that a token is good for the skew of clocks longer", expiry, expiries(func(at time.Time) time.Time { return at.Add(30 * time.Second) })},
		{"wants iat", plain, wants("iat")},
		{"wants an e-mail address", plain, wants("email")},
		{"wants scopes", plain, wants("scope")},
		{"refuses tokens with nbf", plain, refuses(func(r auth.VerifyRequest) bool { _, ok := claimsOf(r.Token)["nbf"]; return ok })},
		{"wants typ", plain, refuses(func(r auth.VerifyRequest) bool { return headerOf(r.Token, "typ") == "" })},
		{"refuses at+jwt", plain, refuses(func(r auth.VerifyRequest) bool { return headerOf(r.Token, "typ") == "at+jwt" })},
		{"refuses tokens over 2 KiB", plain, refuses(func(r auth.VerifyRequest) bool { return len(r.Token) > 2<<10 })},
		{"answers with the groups it saw first", claims, identities(func(first, id auth.Identity) auth.Identity { id.Groups = first.Groups; return id })},
		{"answers with the claims it saw first", claims, identities(func(first, id auth.Identity) auth.Identity { id.Claims = first.Claims; return id })},
		{"adds a claim", claims, identities(func(_, id auth.Identity) auth.Identity {
			var all map[string]any
			_ = json.Unmarshal(id.Claims, &all)
			all["admin"] = true
			id.Claims, _ = json.Marshal(all)
			return id
		})},
		{"has its claims in a list", claims, identities(func(_, id auth.Identity) auth.Identity { id.Claims = json.RawMessage(`[]`); return id })},
		{"puts everybody into the group everybody", claims, identities(func(_, id auth.Identity) auth.Identity { id.Groups = append(id.Groups, "everybody"); return id })},
	}
}

func comparisonLies() []lie {
	notYet := "a token with a start that is still to come is refused"
	issuer, audience, noExpiry, org, form := "a token with another issuer is refused", "a token with another audience is refused", "a token with no expiry is refused", "a token with another organization is refused", "a token with another form is refused"
	text := func(r auth.VerifyRequest, claim string) string { s, _ := claimsOf(r.Token)[claim].(string); return s }
	// about believes tokens that the honest adapter refuses for their claim.
	about := func(reason string, when func(auth.VerifyRequest) bool) func(honest) auth.Adapter {
		return believes(func(r auth.VerifyRequest, err error) bool { return strings.Contains(err.Error(), reason) && when(r) })
	}
	audiences := func(when func(aud string) bool) func(honest) auth.Adapter {
		return about("another audience", func(r auth.VerifyRequest) bool { return when(text(r, "aud")) })
	}
	orgs := func(when func(org string) bool) func(honest) auth.Adapter {
		return about("another organization", func(r auth.VerifyRequest) bool { return when(text(r, "org_id")) })
	}
	return []lie{
		{"compares the start of issuers", issuer, about("of the issuer", func(r auth.VerifyRequest) bool { return strings.HasPrefix(text(r, "iss"), "http://127.0.0.1") })},
		{"compares issuers without their scheme", issuer, about("of the issuer", func(r auth.VerifyRequest) bool { return strings.HasPrefix(text(r, "iss"), "https://127.0.0.1:") })},
		{"trims issuers", issuer, about("of the issuer", func(r auth.VerifyRequest) bool { return strings.HasSuffix(text(r, "iss"), " ") })},
		{"takes an empty issuer for none to check", issuer, about("of the issuer", func(r auth.VerifyRequest) bool { v, ok := claimsOf(r.Token)["iss"]; return ok && v == "" })},
		{"compares audiences whatever their case", audience, audiences(func(aud string) bool { return strings.EqualFold(aud, authtest.Audience) })},
		{"passes over a slash at the end of audiences", audience, audiences(func(aud string) bool { return strings.TrimSuffix(aud, "/") == authtest.Audience })},
		{"looks for the audience anywhere in the text", audience, audiences(func(aud string) bool { return strings.Contains(aud, authtest.Audience) })},
		{"takes audiences for a list of words", audience, audiences(func(aud string) bool { return slices.Contains(strings.Fields(aud), authtest.Audience) })},
		{"compares the start of audiences", audience, audiences(func(aud string) bool { return aud != "" && strings.HasPrefix(authtest.Audience, aud) })},
		{"takes the names of an object for audiences", audience, about("another audience", func(r auth.VerifyRequest) bool { _, ok := claimsOf(r.Token)["aud"].(map[string]any); return ok })},
		{"takes the authorized party for an audience", audience, about("another audience", func(r auth.VerifyRequest) bool { return text(r, "azp") == authtest.Audience })},
		{"compares audiences without query and fragment", audience, audiences(func(aud string) bool {
			return strings.HasPrefix(aud, authtest.Audience+"?") || strings.HasPrefix(aud, authtest.Audience+"#")
		})},
		{"compares audiences as URLs", audience, audiences(func(aud string) bool {
			u, err := url.Parse(aud)
			return err == nil && u.Scheme+"://"+u.Hostname()+u.Path == authtest.Audience && u.RawQuery+u.Fragment == ""
		})},
		{"takes a star for every audience", audience, audiences(func(aud string) bool { return aud == "*" })},
		{"reads an expiry in text", noExpiry, about("exp", func(r auth.VerifyRequest) bool { _, err := strconv.Atoi(text(r, "exp")); return err == nil })},
		{"takes an expiry that is null for none", noExpiry, about("exp", func(r auth.VerifyRequest) bool { v, ok := claimsOf(r.Token)["exp"]; return ok && v == nil })},
		{"reads claims whatever the case of their names", noExpiry, about("no expiry", func(r auth.VerifyRequest) bool { _, ok := claimsOf(r.Token)["EXP"]; return ok })},
		{"compares the start of organizations", org, orgs(func(o string) bool { return strings.HasPrefix(authtest.Organization, o) && o != "" })},
		{"compares organizations whatever their case", org, orgs(func(o string) bool { return strings.EqualFold(o, authtest.Organization) })},
		{"trims organizations", org, orgs(func(o string) bool { return strings.TrimSpace(o) == authtest.Organization })},
		{"takes an empty organization for every one", org, about("another organization", func(r auth.VerifyRequest) bool { v, ok := claimsOf(r.Token)["org_id"]; return ok && v == "" })},
		{"looks for the organization in other claims", org, about("another organization", func(r auth.VerifyRequest) bool { return text(r, "tenant") == authtest.Organization })},
		{"strips the word Bearer", form, strips(func(t string) string { return strings.TrimPrefix(t, "Bearer ") })},
		{"trims tokens", form, strips(strings.TrimSpace)},
		{"passes over line ends in tokens", form, strips(func(t string) string { return strings.ReplaceAll(t, "\n", "") })},
		{"passes over padding of tokens", form, strips(func(t string) string { return strings.TrimRight(t, "=") })},
		{"passes over the spare bits of signatures", form, strips(func(t string) string {
			at := strings.LastIndexByte(t, '.') + 1
			raw, err := base64.RawURLEncoding.DecodeString(t[at:])
			if err != nil {
				return t
			}
			return t[:at] + base64.RawURLEncoding.EncodeToString(raw)
		})},
		{"takes a start in text for none", notYet, about("nbf", func(r auth.VerifyRequest) bool { return text(r, "nbf") != "" })},
		{"takes an issue in text for none", notYet, about("iat", func(r auth.VerifyRequest) bool { return text(r, "iat") != "" })},
		{"reads the subject whatever the case of its name", form, believes(func(r auth.VerifyRequest, _ error) bool { return text(r, "SUB") != "" })},
		{"looks at the thumbprint of a key alone", form, believes(func(r auth.VerifyRequest, _ error) bool {
			cnf, bound := claimsOf(r.Token)["cnf"].(map[string]any)
			return bound && cnf["jkt"] == nil
		})},
		{"strips quotes", form, strips(func(t string) string { return strings.Trim(t, `"`) })},
		{"verifies the first of several tokens", form, strips(func(t string) string { first, _, _ := strings.Cut(t, ","); return first })},
		{"takes any DPoP header for a proof", "a header or a certificate that does not fit proves no possession of a key", believes(func(r auth.VerifyRequest, err error) bool {
			return strings.Contains(err.Error(), "cnf") && r.Headers["dpop"] != ""
		})},
		{"takes a DPoP proof of any key", "a header or a certificate that does not fit proves no possession of a key", believes(func(r auth.VerifyRequest, err error) bool {
			return strings.Contains(err.Error(), "cnf") && strings.Count(r.Headers["dpop"], ".") == 2
		})},
		{"takes any certificate for the one of the token", "a header or a certificate that does not fit proves no possession of a key", believes(func(r auth.VerifyRequest, err error) bool {
			return strings.Contains(err.Error(), "cnf") && r.ClientCertificateSHA256 != ""
		})},
	}
}

func clockLies() []lie {
	const window = "clocks may differ by 30 seconds and no more"
	early := func(claim string) func(honest) auth.Adapter {
		return refuses(func(r auth.VerifyRequest) bool { return off(r.Token, claim) > 25*time.Second })
	}
	late := func(claim string) func(honest) auth.Adapter {
		return believes(func(r auth.VerifyRequest, _ error) bool {
			d := off(r.Token, claim)
			return d > 0 && d < 35*time.Second
		})
	}
	return []lie{
		{"allows 25 seconds after exp", window, refuses(func(r auth.VerifyRequest) bool { return off(r.Token, "exp") < -25*time.Second })},
		{"allows 35 seconds after exp", window, believes(func(r auth.VerifyRequest, _ error) bool {
			d := off(r.Token, "exp")
			return d < 0 && d > -35*time.Second
		})},
		{"allows 25 seconds before nbf", window, early("nbf")},
		{"allows 35 seconds before nbf", window, late("nbf")},
		{"allows 25 seconds before iat", window, early("iat")},
		{"allows 35 seconds before iat", window, late("iat")},
	}
}

func memoryLies() []lie {
	const whole, hundredth, atOnce = "a verdict is about the whole token", "the hundredth verdict is as true as the first", "calls at once with different tokens are each answered with their own subject"
	by := func(key func(auth.VerifyRequest) string) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter { return &remembers{honest: h, key: key} }
	}
	piece := func(t string, i int) string {
		if parts := strings.Split(t, "."); len(parts) == 3 {
			return parts[i]
		}
		return t
	}
	// after changes what it answers from its n-th call on.
	after := func(n int64, change func(req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error)) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter {
			var calls atomic.Int64
			return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
				if calls.Add(1) <= n {
					return id, err
				}
				return change(req, id, err)
			}}
		}
	}
	return []lie{
		{"remembers verdicts by the claims of a token", whole, by(func(r auth.VerifyRequest) string { return piece(r.Token, 1) })},
		{"remembers verdicts by the signature of a token", whole, by(func(r auth.VerifyRequest) string { return piece(r.Token, 2) })},
		{"remembers verdicts by the jti of a token", whole, by(func(r auth.VerifyRequest) string {
			if s, ok := claimsOf(r.Token)["jti"].(string); ok {
				return s
			}
			return r.Token
		})},
		{"remembers verdicts by the first 400 bytes of a token", whole, by(func(r auth.VerifyRequest) string { return r.Token[:min(len(r.Token), 400)] })},
		{"remembers verdicts by the last 100 bytes of a token", whole, by(func(r auth.VerifyRequest) string { return r.Token[max(0, len(r.Token)-100):] })},
		{"remembers verdicts by the claims and half of the signature", whole, by(func(r auth.VerifyRequest) string {
			return piece(r.Token, 1) + piece(r.Token, 2)[:len(piece(r.Token, 2))/2]
		})},
		{"verifies tokens with equal claims once when they come at once", whole, func(h honest) auth.Adapter { return &sharesVerdicts{honest: h} }},
		{"accepts every token from the hundredth on", hundredth, after(100, func(req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			if err != nil {
				return peek(req.Token)
			}
			return id, nil
		})},
		{"refuses every token from the hundredth on", hundredth, after(100, func(auth.VerifyRequest, auth.Identity, error) (auth.Identity, error) {
			return auth.Identity{}, plugins.ErrUnauthenticated
		})},
		{"cannot tell from the two hundredth token on", hundredth, after(200, func(auth.VerifyRequest, auth.Identity, error) (auth.Identity, error) {
			return auth.Identity{}, plugins.ErrUnavailable
		})},
		{"answers with one subject from the fiftieth token on", hundredth, after(50, func(_ auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			id.Subject = "user_alice"
			return id, err
		})},
		{"shares the organization between calls", atOnce, func(h honest) auth.Adapter {
			return &sharesOrganization{shares{honest: h, other: make(chan auth.Identity, 1)}}
		}},
	}
}

// strips takes something off a token before it verifies it.
func strips(change func(string) string) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return stripper{h, change} }
}

type stripper struct {
	honest
	change func(string) string
}

func (a stripper) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	req.Token = a.change(req.Token)
	return a.honest.Verify(ctx, req)
}

// sharesVerdicts gives calls with equal claims that are under way at once the verdict of the first one.
type sharesVerdicts struct {
	honest
	mu      sync.Mutex
	pending map[string]*pendingCall
}

type pendingCall struct {
	done chan struct{}
	id   auth.Identity
	err  error
}

func (a *sharesVerdicts) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	claims, _ := claimsOf(req.Token)["jti"].(string)
	if claims == "" {
		return a.honest.Verify(ctx, req)
	}
	a.mu.Lock()
	if f, ok := a.pending[claims]; ok {
		a.mu.Unlock()
		<-f.done
		return f.id, f.err
	}
	f := &pendingCall{done: make(chan struct{})}
	if a.pending == nil {
		a.pending = map[string]*pendingCall{}
	}
	a.pending[claims] = f
	a.mu.Unlock()
	if f.id, f.err = a.honest.Verify(ctx, req); len(a.pending) > 0 {
		select { // long enough that others come meanwhile, on any machine
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	delete(a.pending, claims)
	a.mu.Unlock()
	close(f.done)
	return f.id, f.err
}

// sharesOrganization answers one of the calls that come at once with the organization of another one.
type sharesOrganization struct{ shares }

func (a *sharesOrganization) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.shares.Verify(ctx, req)
	if said, ok := claimsOf(req.Token)["sub"].(string); ok && err == nil {
		id.Subject = said
	}
	return id, err
}
