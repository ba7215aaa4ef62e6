package authtest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// lie is a broken adapter and the check that must catch it; several may lie about one promise.
type lie struct {
	what  string
	check string
	make  func(honest) auth.Adapter
}

// verdict is a liar whose Verify changes what an honest one answered.
type verdict struct {
	honest
	change func(h honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error)
}

func (v verdict) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := v.honest.Verify(ctx, req)
	return v.change(v.honest, req, id, err)
}

// identities changes the identities of good tokens; seen counts them from 0.
func identities(change func(first, id auth.Identity) auth.Identity) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter {
		var mu sync.Mutex
		var first *auth.Identity
		return verdict{h, func(_ honest, _ auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			if err != nil {
				return id, err
			}
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = &id
			}
			return change(*first, id), nil
		}}
	}
}

// roles changes the roles of good tokens, given what the token says.
func roles(change func(said string, id auth.Identity) string) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter {
		return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			if err == nil {
				said, _ := claimsOf(req.Token)["role"].(string)
				id.OrgRole = change(said, id)
			}
			return id, err
		}}
	}
}

// refuses refuses good tokens for which when holds.
func refuses(when func(auth.VerifyRequest) bool) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter {
		return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			if err == nil && when(req) {
				return auth.Identity{}, plugins.ErrUnauthenticated
			}
			return id, err
		}}
	}
}

// believes accepts bad tokens for which when holds.
func believes(when func(auth.VerifyRequest, error) bool) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter {
		return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			if errors.Is(err, plugins.ErrUnauthenticated) && when(req, err) {
				return peek(req.Token)
			}
			return id, err
		}}
	}
}

func part(token string, i int) map[string]any {
	parts := strings.Split(token, ".")
	if len(parts) <= i {
		return nil
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[i])
	var all map[string]any
	_ = json.Unmarshal(raw, &all)
	return all
}

func claimsOf(token string) map[string]any { return part(token, 1) }

func headerOf(token, name string) string { s, _ := part(token, 0)[name].(string); return s }

// off is how far a time of a token is from now.
func off(token, claim string) time.Duration {
	at, ok := claimsOf(token)[claim].(float64)
	if !ok {
		return 0
	}
	return time.Until(time.Unix(int64(at), 0))
}

func newLies() []lie {
	const subject, organization = "each token is its own subject's, whatever tokens came before", "each token has its own organization, whatever tokens came before"
	return []lie{
		{"answers with the subject it saw first", subject, identities(func(first, id auth.Identity) auth.Identity { id.Subject = first.Subject; return id })},
		{"cuts subjects at 8 bytes", subject, identities(func(_, id auth.Identity) auth.Identity { id.Subject = id.Subject[:min(8, len(id.Subject))]; return id })},
		{"names itself as the issuer", subject, identities(func(_, id auth.Identity) auth.Identity { id.Issuer = "adapter"; return id })},
		{"answers with the organization it saw first", organization, identities(func(first, id auth.Identity) auth.Identity { id.OrganizationID = first.OrganizationID; return id })},
		{"always names the same organization", organization, identities(func(_, id auth.Identity) auth.Identity { id.OrganizationID = authtest.Organization; return id })},
		{"answers with the name it saw first", "no token has the name or e-mail address of somebody else", identities(func(first, id auth.Identity) auth.Identity { id.DisplayName = first.DisplayName; return id })},
		{"answers with the address of whom it knows by that name", "no token has the name or e-mail address of somebody else", func(h honest) auth.Adapter {
			known := map[string]string{}
			return verdict{h, func(_ honest, _ auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
				if mail, ok := known[id.DisplayName]; ok {
					id.Email = mail
				}
				known[id.DisplayName] = id.Email
				return id, err
			}}
		}},
		{"shares a buffer between calls", "calls at once with different tokens are each answered with their own subject", func(h honest) auth.Adapter { return &shares{honest: h, other: make(chan auth.Identity, 1)} }},
		{"grants the scope admin", "nobody has scopes that the token does not grant", identities(func(_, id auth.Identity) auth.Identity { id.Scopes = append(id.Scopes, "admin"); return id })},
		{"grants the scopes it saw first", "nobody has scopes that the token does not grant", identities(func(first, id auth.Identity) auth.Identity { id.Scopes = first.Scopes; return id })},

		{"makes everybody owner", "a token of a settings that name no role claim is no more than a member's", roles(func(string, auth.Identity) string { return "owner" })},
		{"makes those without a role admin", "a token without a role is no more than a member's", roles(func(said string, id auth.Identity) string {
			if said == "" && id.OrgRole == "" {
				return "admin"
			}
			return id.OrgRole
		})},
		{"takes superowner for owner", "a role that the server does not know makes nobody more than a member", roles(func(said string, id auth.Identity) string {
			if strings.HasSuffix(said, "owner") {
				return "owner"
			}
			return id.OrgRole
		})},
		{"takes members for admins", "a token with the role member has that role", roles(func(_ string, id auth.Identity) string { return strings.Replace(id.OrgRole, "member", "admin", 1) })},
		{"takes admins for owners", "a token with the role admin has that role", roles(func(_ string, id auth.Identity) string { return strings.Replace(id.OrgRole, "admin", "owner", 1) })},
		{"takes owners for admins", "a token with the role owner has that role", roles(func(_ string, id auth.Identity) string { return strings.Replace(id.OrgRole, "owner", "admin", 1) })},

		{"allows nothing after exp", "a token that expired 20 s ago is still good", refuses(func(r auth.VerifyRequest) bool { return off(r.Token, "exp") < 0 })},
		{"allows a minute after exp", "a token that expired 45 s ago is refused", believes(func(r auth.VerifyRequest, err error) bool {
			return strings.Contains(err.Error(), "expired") && off(r.Token, "exp") > -time.Minute
		})},
		{"allows nothing before nbf", "a token that is good from 20 s from now on is good already", refuses(func(r auth.VerifyRequest) bool { return off(r.Token, "nbf") > 0 })},
		{"allows a minute before nbf", "a token that is good from 45 s from now on is refused", believes(func(r auth.VerifyRequest, _ error) bool { d := off(r.Token, "nbf"); return d > 0 && d < time.Minute })},
		{"allows nothing before iat", "a token that was issued 20 s from now is good already", refuses(func(r auth.VerifyRequest) bool { return off(r.Token, "iat") > 2*time.Second })},
		{"does not look at iat", "a token that was issued 45 s from now is refused", believes(func(_ auth.VerifyRequest, err error) bool { return strings.Contains(err.Error(), "(iat)") })},
		{"remembers verdicts for a minute", "a token that was good is refused once it is over", func(h honest) auth.Adapter {
			return &remembers{honest: h, key: func(r auth.VerifyRequest) string { return r.Token }}
		}},
		{"looks at the first audience of a token only", "each audience of a token counts", refuses(func(r auth.VerifyRequest) bool {
			list, ok := claimsOf(r.Token)["aud"].([]any)
			return ok && !slices.Contains(r.Audiences, fmt.Sprint(list[0]))
		})},
		{"wants a list of audiences", "each audience of a token counts", refuses(func(r auth.VerifyRequest) bool { _, one := claimsOf(r.Token)["aud"].(string); return one })},
		{"looks at the first audience of a request only", "each audience of a request counts", refuses(func(r auth.VerifyRequest) bool {
			return len(r.Audiences) > 0 && r.Audiences[0] != authtest.Audience && r.Audiences[0] != "https://other.example"
		})},
		{"remembers verdicts whatever audience is asked for", "a token that was accepted for one audience is refused for another", func(h honest) auth.Adapter {
			return &remembers{honest: h, key: func(r auth.VerifyRequest) string { return r.Token }}
		}},

		{"names no RS256", "an adapter accepts RS256", func(h honest) auth.Adapter { return describesAs{h, []string{"PS256"}} }},
		{"accepts ES256 that it does not name", "tokens signed with ES256 are accepted exactly when describe names it", believes(func(r auth.VerifyRequest, _ error) bool { return headerOf(r.Token, "alg") == "ES256" })},
		{"names ES256 and refuses it", "tokens signed with ES256 are accepted exactly when describe names it", func(h honest) auth.Adapter { return describesAs{h, []string{"RS256", "ES256"}} }},
		{"accepts EdDSA that it does not name", "tokens signed with EdDSA are accepted exactly when describe names it", believes(func(r auth.VerifyRequest, _ error) bool { return headerOf(r.Token, "alg") == "EdDSA" })},
		{"accepts any signature under an EC key id", "a token with another algorithm is refused", believes(func(r auth.VerifyRequest, _ error) bool { return headerOf(r.Token, "kid") == "ES256" })},

		{"drops the first key when it finds a second", "a key that the provider added beside the first is found, and the first stays good", func(h honest) auth.Adapter { return dropsFirst(h) }},
		{"fails on keys that it does not know", "keys that cannot be used are passed over", cannotTellWhen(func(h honest) bool { return strings.Contains(answerOf(h, "/oauth2/jwks"), `"odd"`) })},
		{"drops its keys for an answer that is no JSON", "a key set that is no JSON does not replace good keys", cannotTellWhen(func(h honest) bool { return strings.HasPrefix(answerOf(h, "/oauth2/jwks"), "<") })},
		{"drops its keys for an answer that never ends", "a key set that never ends does not replace good keys", cannotTellWhen(func(h honest) bool { return len(answerOf(h, "/oauth2/jwks")) > 1<<20 })},
		{"gives its provider half a second", "a provider that takes a second to answer is waited for", func(h honest) auth.Adapter { return impatient{h} }},
		{"does not ask a provider again that failed", "a provider that comes back is asked again", func(h honest) auth.Adapter { return &resigns{honest: h} }},
		{"relays whatever the provider writes", "metadata about another issuer is not relayed", func(h honest) auth.Adapter { return relays{h} }},
		{"has no metadata while the provider is away", "metadata is unavailable while the provider is away", func(h honest) auth.Adapter { return hasNone{h} }},
		{"names a host as its authorization server", "authorization servers are absolute URLs", func(h honest) auth.Adapter { return namesHost{h} }},

		{"takes id tokens of other clients", "a login whose id token is for another client is refused", takesLogins("another audience")},
		{"takes id tokens that have expired", "a login whose id token has expired is refused", takesLogins("has expired")},
		{"does not check signatures of id tokens", "a login whose id token somebody else signed is refused", takesLogins("signature")},
		{"does without an id token", "a login without an id token is refused", takesLogins("no id token")},
		{"does not look at the organization of id tokens", "a login of another organization is refused", takesLogins("another organization")},
		{"remembers codes", "a code is good once", func(h honest) auth.Adapter { return &remembersCodes{honest: h, known: map[string]auth.Identity{}} }},
		{"refuses logins while the provider answers 500", "a login is unavailable while the provider answers 500", func(h honest) auth.Adapter { return refusesLogin{h} }},
		{"repeats the code", "no error of a login repeats the code or the verifier", func(h honest) auth.Adapter { return repeatsCode{h} }},
		{"believes UserInfo of anybody", "names of another subject at the UserInfo endpoint are not used", func(h honest) auth.Adapter { return believesUserInfo{h} }},
		{"takes the role of UserInfo", "a role at the UserInfo endpoint makes nobody more than a member", func(h honest) auth.Adapter { return ranksByUserInfo{h} }},
		{"follows redirects to other hosts", "an adapter that starts while its provider redirects to another host for its keys answers unavailable", refusesWhen("redirect")},
		{"refuses when the metadata never ends", "an adapter that starts while its provider never ends its metadata answers unavailable", refusesWhen("is larger than")},
	}
}

// undeclared is the check of adapters without the capability sessions.
const undeclared = "without the capability sessions its calls are unimplemented"

// allLies are those about one check each.
func allLies() []lie {
	return slices.Concat(newLies(), exactLies(), sessionLies(), logoutLies(), proofLies(), silenceLies())
}

func TestEachLieIsCaughtByItsCheck(t *testing.T) {
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range allLies() {
		t.Run(l.what, func(t *testing.T) {
			t.Parallel()
			out := &kit.Output{}
			s := authtest.Subject{Keys: keys, Rechecks: l.check != undeclared, Binds: true, Heard: out.String, Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
				h, end, err := openHonest(ctx, p, out)
				return l.make(h), end, err
			}}
			check := slices.DeleteFunc(authtest.Checks(s), func(c kit.Check[authtest.Subject]) bool { return c.Name != l.check })
			if failed := kit.Failed(kit.Run(t.Context(), check, s)); len(failed) != 1 {
				t.Errorf("not caught by the check %q", l.check)
			}
		})
	}
}

func TestEveryCheckIsAPromiseOfTheContract(t *testing.T) {
	plugintest.InContract(t, "auth", authtest.Checks(authtest.Subject{Keys: &authtest.Keys{}, Rechecks: true, Binds: true}))
}

func TestAnHonestAdapterIsNotCaughtAndNothingIsSkipped(t *testing.T) {
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	out := &kit.Output{}
	s := authtest.Subject{Keys: keys, Rechecks: true, Binds: true, Heard: out.String, Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
		h, end, err := openHonest(ctx, p, out)
		return &binder{honest: h}, end, err
	}}
	for _, check := range authtest.Checks(s) {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			for _, r := range kit.Run(t.Context(), []kit.Check[authtest.Subject]{check}, s) {
				if r.Err != nil || r.Skipped != "" {
					t.Errorf("%v %s", r.Err, r.Skipped)
				}
			}
		})
	}
}

// shares gives one of the calls that come at once the answer of another one. That call waits until
// there is another one, so that the lie does not depend on the speed of the machine.
type shares struct {
	honest
	mu    sync.Mutex
	calls int
	own   auth.Identity      // of the call that waits
	other chan auth.Identity // of another subject
}

func (a *shares) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	if err != nil {
		return id, err
	}
	a.mu.Lock()
	a.calls++
	number := a.calls // the check makes its first call alone
	if number == 2 {
		a.own = id
	}
	other := number > 2 && id.Subject != a.own.Subject && id.OrganizationID != a.own.OrganizationID
	a.mu.Unlock()
	switch {
	case number == 2:
		select {
		case id = <-a.other:
		case <-ctx.Done():
		}
	case other:
		select {
		case a.other <- id:
		default: // there was one already
		}
	}
	return id, nil
}

// remembers answers again what it answered to the same key.
type remembers struct {
	honest
	key   func(auth.VerifyRequest) string
	known sync.Map
}

func (a *remembers) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	if id, ok := a.known.Load(a.key(req)); ok {
		return id.(auth.Identity), nil
	}
	id, err := a.honest.Verify(ctx, req)
	if err == nil {
		a.known.Store(a.key(req), id)
	}
	return id, err
}

type describesAs struct {
	honest
	algorithms []string
}

func (a describesAs) Describe(ctx context.Context) (auth.Description, error) {
	d, err := a.honest.Describe(ctx)
	d.Algorithms = a.algorithms
	return d, err
}

func dropsFirst(h honest) auth.Adapter {
	var second bool
	return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
		second = second || err == nil && headerOf(req.Token, "kid") == "second"
		if second && headerOf(req.Token, "kid") == "first" {
			return auth.Identity{}, plugins.ErrUnauthenticated
		}
		return id, err
	}}
}

func answerOf(h honest, path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second) // less than a check may take
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, h.provider.Issuer()+path, nil)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	_, _ = io.Copy(&b, io.LimitReader(resp.Body, 2<<20))
	return b.String()
}

func cannotTellWhen(when func(honest) bool) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter {
		return verdict{h, func(h honest, _ auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
			if err == nil && when(h) {
				return auth.Identity{}, plugins.ErrUnavailable
			}
			return id, err
		}}
	}
}

type impatient struct{ honest }

func (a impatient) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return a.honest.Verify(ctx, req)
}

type resigns struct {
	honest
	failed atomic.Bool
}

func (a *resigns) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	if a.failed.Load() {
		return auth.Identity{}, plugins.ErrUnavailable
	}
	id, err := a.honest.Verify(ctx, req)
	if errors.Is(err, plugins.ErrUnavailable) {
		a.failed.Store(true)
	}
	return id, err
}

type relays struct{ honest }

func (a relays) Metadata(context.Context) (json.RawMessage, error) {
	return json.RawMessage(answerOf(a.honest, "/.well-known/openid-configuration")), nil
}

type hasNone struct{ honest }

func (a hasNone) Metadata(ctx context.Context) (json.RawMessage, error) {
	raw, err := a.honest.Metadata(ctx)
	if err != nil {
		err = plugins.ErrNotFound
	}
	return raw, err
}

type namesHost struct{ honest }

func (a namesHost) Describe(ctx context.Context) (auth.Description, error) {
	d, err := a.honest.Describe(ctx)
	d.AuthorizationServers = []string{"id.example.com"}
	return d, err
}

func takesLogins(reason string) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return logsIn{h, reason} }
}

type remembersCodes struct {
	honest
	known map[string]auth.Identity
}

func (a *remembersCodes) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if id, ok := a.known[req.Code]; ok {
		return id, nil
	}
	id, err := a.honest.Exchange(ctx, req)
	if err == nil {
		a.known[req.Code] = id
	}
	return id, err
}

type repeatsCode struct{ honest }

func (a repeatsCode) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if err != nil {
		err = fmt.Errorf("%w: the code was %s", err, req.Code)
	}
	return id, err
}

type believesUserInfo struct{ honest }

func (a believesUserInfo) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if id.Email == "" {
		id.Email = "alice@example.com"
	}
	return id, err
}

type ranksByUserInfo struct{ honest }

func (a ranksByUserInfo) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if err == nil { // what the kit's provider says there
		id.OrgRole = "owner"
	}
	return id, err
}

func refusesWhen(reason string) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return refusesAway{h, reason} }
}
