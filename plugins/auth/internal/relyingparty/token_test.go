package relyingparty

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestAValidTokenInADifferentEncodingIsRefused(t *testing.T) {
	p := newProvider(t)
	party := p.party()
	good := p.token("first")
	if err := check(t, party, good); err != nil {
		t.Fatal(err)
	}
	last := good[len(good)-1]
	for name, token := range map[string]string{
		"a space before":             " " + good,
		"a line break at the end":    good + "\n",
		"a line break in the middle": strings.Replace(good, ".", ".\n", 1),
		"padding":                    good + "==",
		"standard base64":            strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+",
		"bits after the last one":    good[:len(good)-1] + string(nextBase64(last)),
		"larger than 64 KiB":         p.token("first", map[string]any{"x": strings.Repeat("x", 64<<10)}),
	} {
		if err := check(t, party, token); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

func TestTokensThatNoKeyCouldVerifyAreRefusedDuringAnOutage(t *testing.T) {
	p := newProvider(t)
	p.setDown(true)
	party := p.party()
	good := p.token("first")
	for name, token := range map[string]string{
		"expired":               p.token("first", map[string]any{"exp": 1}),
		"another issuer":        p.token("first", map[string]any{"iss": issuer + "/"}),
		"no subject":            p.token("first", map[string]any{"sub": ""}),
		"an unpaired surrogate": p.token("first", map[string]any{"sub": json.RawMessage(`"a\ud800"`)}),
		"not UTF-8":             p.token("first", map[string]any{"name": json.RawMessage("\"a\xff\"")}),
		"no signature":          good[:strings.LastIndexByte(good, '.')+1],
		"no token":              "",
	} {
		if err := check(t, party, token); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if asked := len(p.asked); asked > 0 {
		t.Errorf("the provider received %v", p.asked)
	}
	if err := check(t, party, good); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("a valid token: got %v, want unavailable", err)
	}
}

func nextBase64(c byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, c)|1]
}

func TestClocksMayDifferByHalfAMinute(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) json.RawMessage { return mustJSON(now.Add(d).Unix()) }
	later := at(time.Hour)
	for name, c := range map[string]struct {
		claims Claims
		good   bool
	}{
		"expired 29 s ago":       {Claims{"exp": at(-29 * time.Second)}, true},
		"expired 30 s ago":       {Claims{"exp": at(-30 * time.Second)}, false},
		"starts in 30 s":         {Claims{"exp": later, "nbf": at(30 * time.Second)}, true},
		"starts in 31 s":         {Claims{"exp": later, "nbf": at(31 * time.Second)}, false},
		"issued in 31 s":         {Claims{"exp": later, "iat": at(31 * time.Second)}, false},
		"fractions of a second":  {Claims{"exp": mustJSON(float64(now.Unix()) + 0.5)}, true},
		"no expiry":              {Claims{"nbf": at(0)}, false},
		"expiry null":            {Claims{"exp": json.RawMessage("null")}, false},
		"expiry as a string":     {Claims{"exp": mustJSON("1800003600")}, false},
		"expiry after year 9999": {Claims{"exp": json.RawMessage("1e12")}, false},
		"expiry beyond a float":  {Claims{"exp": json.RawMessage("1e999")}, false},
		"start as a string":      {Claims{"exp": later, "nbf": mustJSON("0")}, false},
		"expiry in another case": {Claims{"Exp": later}, false},
	} {
		if err := checkTimes(c.claims, now); (err == nil) != c.good {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func TestClaimsBecomeAnIdentity(t *testing.T) {
	roles := func(o *Options) {
		o.RoleClaim = "realm_access.roles"
		o.Roles = map[string]string{"boss": "owner", "lead": "admin"}
	}
	for name, c := range map[string]struct {
		options func(*Options)
		claims  map[string]any
		want    auth.Identity
	}{
		"everything": {func(o *Options) { o.RoleClaim = "role" },
			map[string]any{"name": "Alice A.", "email": "a@example.com", "email_verified": true, "role": "admin", "org_id": "org_1", "scope": "a b", "sid": "s1"},
			auth.Identity{DisplayName: "Alice A.", Email: "a@example.com", SessionID: "s1", OrgRole: "admin", OrganizationID: "org_1", Scopes: []string{"a", "b"}}},
		"a role without a role claim is none": {func(*Options) {}, map[string]any{"role": "owner"}, auth.Identity{}},
		"an unknown role is none":             {func(o *Options) { o.RoleClaim = "role" }, map[string]any{"role": "root"}, auth.Identity{}},
		"the highest of nested roles": {roles, map[string]any{"realm_access": map[string]any{"roles": []string{"x", "lead", "boss"}}},
			auth.Identity{OrgRole: "owner"}},
		"with a map, the plain names do not apply": {roles, map[string]any{"realm_access": map[string]any{"roles": []string{"owner"}}}, auth.Identity{}},
		"a claim whose name has dots": {func(o *Options) { o.RoleClaim = "https://example.com/roles" },
			map[string]any{"https://example.com/roles": []string{"member"}}, auth.Identity{OrgRole: "member"}},
		"an unverified address":                {func(*Options) {}, map[string]any{"email": "boss@example.com", "email_verified": false}, auth.Identity{}},
		`email_verified is the string "false"`: {func(*Options) {}, map[string]any{"email": "boss@example.com", "email_verified": "false"}, auth.Identity{}},
		"email_verified is 1":                  {func(*Options) {}, map[string]any{"email": "boss@example.com", "email_verified": 1}, auth.Identity{}},
		"email_verified is null":               {func(o *Options) { o.AssumeEmailVerified = true }, map[string]any{"email": "boss@example.com", "email_verified": json.RawMessage("null")}, auth.Identity{}},
		"no email_verified":                    {func(*Options) {}, map[string]any{"email": "boss@example.com"}, auth.Identity{}},
		"no email_verified, with the setting": {func(o *Options) { o.AssumeEmailVerified = true },
			map[string]any{"email": "a@example.com"}, auth.Identity{Email: "a@example.com", DisplayName: "a@example.com"}},
		"an unverified address, and the setting": {func(o *Options) { o.AssumeEmailVerified = true }, map[string]any{"email": "boss@example.com", "email_verified": false}, auth.Identity{}},
		"a user name to show":                    {func(*Options) {}, map[string]any{"preferred_username": "al"}, auth.Identity{DisplayName: "al"}},
		"an address to show":                     {func(*Options) {}, map[string]any{"email": "a@example.com", "email_verified": "true"}, auth.Identity{Email: "a@example.com", DisplayName: "a@example.com"}},
		"one of several organizations":           {func(o *Options) { o.Organization = "org_2" }, map[string]any{"org_id": []string{"org_1", "org_2"}}, auth.Identity{OrganizationID: "org_2"}},
		"several organizations, none requested":  {func(*Options) {}, map[string]any{"org_id": []string{"org_1", "org_2"}}, auth.Identity{}},
		"groups":                                 {func(o *Options) { o.GroupsClaim = "member_of" }, map[string]any{"member_of": []string{"a", "b"}, "groups": []string{"c"}}, auth.Identity{Groups: []string{"a", "b"}}},
		"groups that are not requested":          {func(*Options) {}, map[string]any{"groups": []string{"a"}}, auth.Identity{}},
		"the first name to show":                 {func(*Options) {}, map[string]any{"name": "Al", "preferred_username": "al"}, auth.Identity{DisplayName: "Al"}},
		"scopes as a list":                       {func(*Options) {}, map[string]any{"scp": []string{"a", "b"}}, auth.Identity{Scopes: []string{"a", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			got, err := p.party(c.options).Verify(t.Context(), auth.VerifyRequest{Token: p.token("first", c.claims), Audiences: []string{"us"}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Issuer != issuer || got.Subject != "alice" || time.Until(got.ExpiresAt) < 47*time.Hour {
				t.Errorf("got %+v", got)
			}
			if got.Email != c.want.Email || got.DisplayName != c.want.DisplayName || got.OrganizationID != c.want.OrganizationID ||
				got.OrgRole != c.want.OrgRole || !slices.Equal(got.Groups, c.want.Groups) || got.SessionID != c.want.SessionID || !slices.Equal(got.Scopes, c.want.Scopes) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			var kept map[string]any
			if err := json.Unmarshal(got.Claims, &kept); err != nil || kept["sub"] != "alice" || len(kept) != 4+len(c.claims) {
				t.Errorf("the identity has the claims %s (%v)", got.Claims, err)
			}
		})
	}
}

// FuzzToken checks that readToken either rejects a token or returns one with RS256.
func FuzzToken(f *testing.F) {
	encode := base64.RawURLEncoding.EncodeToString
	for _, header := range []string{`{"alg":"RS256","kid":"k"}`, `{"alg":"none"}`, `{"alg":["RS256"]}`, `{"alg":"RS256","crit":["b64"],"b64":false}`, `[]`, `{"alg":"RS256","alg":"none"}`} {
		f.Add(encode([]byte(header)) + "." + encode([]byte(`{"iss":"i","exp":1e3}`)) + "." + encode([]byte("signature")))
	}
	f.Add("a.b.c")
	f.Add("..")
	f.Fuzz(func(t *testing.T, compact string) {
		read, err := readToken(compact, []string{"RS256"})
		if err != nil {
			if !errors.Is(err, plugins.ErrUnauthenticated) {
				t.Fatalf("got %v, want a refusal", err)
			}
			return
		}
		var header map[string]any
		raw, err := base64.RawURLEncoding.DecodeString(strings.Split(compact, ".")[0])
		if err != nil || json.Unmarshal(raw, &header) != nil || header["alg"] != "RS256" || header["crit"] != nil || read.claims == nil {
			t.Fatalf("read %q from the header %q (%v)", read.claims, raw, err)
		}
	})
}

func TestATokenFromAnotherOrganizationIsRefused(t *testing.T) {
	p := newProvider(t)
	party := p.party(func(o *Options) { o.Organization = "org_1" })
	for name, claims := range map[string]map[string]any{
		"another one": {"org_id": "org_2"}, "none": nil, "several others": {"org_id": []string{"org_2", "org_11"}}, "a part of the name": {"org_id": "org"},
	} {
		id, err := party.Verify(t.Context(), auth.VerifyRequest{Token: p.token("first", claims), Audiences: []string{"us"}})
		if !errors.Is(err, plugins.ErrUnauthenticated) || !strings.Contains(err.Error(), "another organization") {
			t.Errorf("%s: got %+v, %v", name, id, err)
		}
	}
}
