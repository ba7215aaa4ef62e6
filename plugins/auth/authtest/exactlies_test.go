package authtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
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

func providerLies() []lie {
	const start, end = "an adapter that starts while its provider ", " answers unavailable"
	// reads answers itself where the honest adapter does not use an answer of the provider.
	reads := func(reason string) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter {
			return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
				if errors.Is(err, plugins.ErrUnavailable) && strings.Contains(err.Error(), reason) {
					return peek(req.Token)
				}
				return id, err
			}}
		}
	}
	const late, lateLogin, values = "metadata returns when its time is over", "the end of a login returns when its time is over", "metadata is the provider's document, value for value"
	return []lie{
		{"takes documents about an issuer with a slash more", start + "writes documents about an issuer with a slash more" + end, reads("is about the issuer")},
		{"reads documents of any size", start + "writes documents of 3 MiB" + end, reads("is larger than")},
		{"reads key sets of any size", start + "writes a key set of 3 MiB" + end, reads("is larger than")},
		{"follows redirects of documents to other hosts", start + "redirects to another host for its metadata" + end, reads("redirect")},
		{"keeps a connection for each verification that was given up", "a provider that comes back is asked again", func(h honest) auth.Adapter { return &leaksSlots{honest: h, slots: make(chan struct{}, 32)} }},
		{"waits for the metadata beyond the deadline", late, func(h honest) auth.Adapter { return takesItsTimeElsewhere{h, "metadata"} }},
		{"refuses a login when its time is over", lateLogin, func(h honest) auth.Adapter { return refusesLate{h} }},
		{"waits for the end of a login beyond the deadline", lateLogin, func(h honest) auth.Adapter { return takesItsTimeElsewhere{h, "exchange"} }},
		{"has no metadata when its time is over", late, func(h honest) auth.Adapter { return hasNone{h} }},
		{"rounds the numbers of metadata", values, relaysAs(func(doc map[string]any) { doc["x_number"] = 12345678901234567890.0 })},
		{"leaves out what is null", values, relaysAs(func(doc map[string]any) { delete(doc, "x_null") })},
		{"leaves out what is nested", values, relaysAs(func(doc map[string]any) { doc["x_nested"] = map[string]any{} })},
		{"adds a member to metadata", values, relaysAs(func(doc map[string]any) { doc["registration_endpoint"] = "https://adapter.example/register" })},
		{"names its own token endpoint in metadata", values, relaysAs(func(doc map[string]any) { doc["token_endpoint"] = "https://adapter.example/token" })},
	}
}

type leaksSlots struct {
	honest
	slots chan struct{}
}

func (a *leaksSlots) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return auth.Identity{}, plugins.Unavailable(ctx.Err())
	}
	id, err := a.honest.Verify(ctx, req)
	if ctx.Err() == nil {
		<-a.slots
	}
	return id, err
}

type takesItsTimeElsewhere struct {
	honest
	method string
}

// wait asks the provider and waits for it whatever the deadline of the call is.
func (a takesItsTimeElsewhere) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = ask(ctx, a.provider.Issuer()+"/oauth2/userinfo")
}

func (a takesItsTimeElsewhere) Metadata(ctx context.Context) (json.RawMessage, error) {
	if a.method == "metadata" {
		a.wait(ctx)
	}
	return a.honest.Metadata(ctx)
}

func (a takesItsTimeElsewhere) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if a.method == "exchange" {
		a.wait(ctx)
	}
	return a.honest.Exchange(ctx, req)
}

// refusesLate takes a deadline for a refusal.
type refusesLate struct{ honest }

func (a refusesLate) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if ctx.Err() != nil {
		err = plugins.ErrUnauthenticated
	}
	return id, err
}

// relaysAs changes metadata; everything that it does not change stays as it is.
func relaysAs(change func(map[string]any)) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return relaysChanged{h, change} }
}

type relaysChanged struct {
	honest
	change func(map[string]any)
}

func (a relaysChanged) Metadata(ctx context.Context) (json.RawMessage, error) {
	raw, err := a.honest.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	doc := map[string]any{}
	if err := decoder.Decode(&doc); err != nil {
		return nil, err
	}
	a.change(doc)
	return json.Marshal(doc)
}

func loginLies() []lie {
	const tokens, nonces, person, atOnce, state = "no id token ends a login that Verify would refuse as a token", "an id token without the nonce of the login is refused", "a login is the person's of the id token, whoever the access token is about",
		"logins at once end each with its own verifier and nonce", "the state comes back whatever characters it has, to where the request says"
	var list []lie
	for what, reason := range map[string]string{
		"takes id tokens of any issuer": "of the issuer", "takes id tokens without an expiry": "no expiry", "takes id tokens that are not valid yet": "not valid yet",
		"takes id tokens without a subject": "no subject", "takes id tokens for any audience": "another audience", "takes id tokens signed with anything": "algorithm is",
		"takes id tokens of keys that nobody has": "no key", "takes id tokens with critical headers": "critical headers",
	} {
		list = append(list, lie{what, tokens, takesLogins(reason)})
	}
	return append(list,
		lie{"does without a nonce", nonces, takesLogins("nonce")},
		lie{"is the person of the access token", person, func(h honest) auth.Adapter { return believesAccessToken{h} }},
		lie{"keeps one nonce at a time", atOnce, func(h honest) auth.Adapter { return &keepsOneNonce{honest: h} }},
		lie{"does one login at a time", atOnce, func(h honest) auth.Adapter { return &oneLoginAtATime{honest: h} }},
		lie{"takes the nonce of any login", atOnce, func(h honest) auth.Adapter { return logsIn{h, "nonce"} }},
		lie{"writes the state as it is", state, urls(func(q url.Values, address *url.URL) {
			plain := q.Get("state")
			q.Del("state")
			address.RawQuery = q.Encode() + "&state=" + strings.ReplaceAll(plain, " ", "+")
		})},
		lie{"cuts the state at 512 bytes", state, urls(func(q url.Values, address *url.URL) {
			q.Set("state", q.Get("state")[:min(512, len(q.Get("state")))])
			address.RawQuery = q.Encode()
		})},
		lie{"comes back to where its settings say", state, urls(func(q url.Values, address *url.URL) {
			q.Set("redirect_uri", authtest.RedirectURI)
			address.RawQuery = q.Encode()
		})},
		lie{"sends the code to wherever the provider redirects", "code and verifier follow no redirect to another host", func(h honest) auth.Adapter { return strays{h} }},
	)
}

type believesAccessToken struct{ honest }

func (a believesAccessToken) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	id.Subject = "user_mallory" // as the access token of that login says
	return id, err
}

// keepsOneNonce checks logins by the nonce of the one that began last.
type keepsOneNonce struct {
	honest
	nonce atomic.Value
}

func (a *keepsOneNonce) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	a.nonce.Store(req.Nonce)
	return a.honest.AuthorizeURL(ctx, req)
}

func (a *keepsOneNonce) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	req.Nonce, _ = a.nonce.Load().(string)
	return a.honest.Exchange(ctx, req)
}

// oneLoginAtATime gives up a login when another one begins.
type oneLoginAtATime struct {
	honest
	begun, ended atomic.Int64
}

func (a *oneLoginAtATime) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	a.begun.Add(1)
	return a.honest.AuthorizeURL(ctx, req)
}

func (a *oneLoginAtATime) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if a.begun.Load() > a.ended.Add(1) {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return a.honest.Exchange(ctx, req)
}

// urls changes the addresses of logins.
func urls(change func(url.Values, *url.URL)) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return urlChanger{h, change} }
}

type urlChanger struct {
	honest
	change func(url.Values, *url.URL)
}

func (a urlChanger) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	text, err := a.honest.AuthorizeURL(ctx, req)
	if err != nil {
		return "", err
	}
	address, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	a.change(maps.Clone(address.Query()), address)
	return address.String(), nil
}

// strays sends codes with a client that follows every redirect.
type strays struct{ honest }

func (a strays) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {req.Code}, "code_verifier": {req.CodeVerifier}, "redirect_uri": {req.RedirectURI}, "client_id": {authtest.ClientID}}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, a.provider.Issuer()+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return auth.Identity{}, err
	}
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(ask)
	if err != nil {
		return auth.Identity{}, plugins.Unavailable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return auth.Identity{}, plugins.ErrUnavailable
}
