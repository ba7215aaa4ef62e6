package workos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func TestMain(m *testing.M) {
	if err := testkit.Parallel("32"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func newKeys(t *testing.T) *authtest.Keys {
	t.Helper()
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// settings returns the settings for p as the AuthKit and the API at that URL, with changes.
func settings(p *authtest.Provider, api string, changes ...map[string]any) plugins.Config {
	all := map[string]any{
		"issuer": p.Issuer(), "clientId": p.ClientID, "redirectUri": authtest.RedirectURI,
		"organizationId": organizationOf(p), "apiKey": apiKey, "apiUrl": api,
	}
	for _, change := range changes {
		for name, value := range change {
			all[name] = value
		}
	}
	raw, _ := json.Marshal(all)
	return plugins.Config{JSON: raw}
}

// organizationOf returns the organization to configure, or "" for any.
func organizationOf(p *authtest.Provider) string {
	if p.Setup == authtest.OneOrganization {
		return p.Organization
	}
	return ""
}

func TestWorkOSKeepsTheContract(t *testing.T) {
	everybody := newAPI()
	everybody.open = true
	server := httptest.NewServer(everybody)
	t.Cleanup(server.Close)
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		out := &kit.Output{}
		plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Quick), authtest.Subject{
			Keys: newKeys(t), Logins: true, Rechecks: true, Heard: out.String, Limits: authtest.Limits{NoRoles: true, NoIntrospection: true},
			Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
				adapter := New()
				adapter.UseLogger(hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Trace, JSONFormat: true}))
				err := adapter.Configure(ctx, settings(p, server.URL))
				return adapter, func() { _ = adapter.Close() }, err
			},
		})
	})
	t.Run("as an executable", func(t *testing.T) {
		t.Parallel()
		testenv.PassesItsKit(t, 0, "auth-workos", fmt.Sprintf(`{"issuer": "${issuer}", "clientId": "${clientId}", "redirectUri": "${redirectUri}", "organizationId": "${organization}", "apiKey": %q, "apiUrl": %q}`, apiKey, server.URL))
	})
}

func TestMembershipDecidesWhoMayLogInAndWithWhichRole(t *testing.T) {
	keys := newKeys(t)
	with := func(pairs ...any) map[string]any {
		m := active("user_alice", "admin")
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1] //nolint:forcetypeassert // pairs holds names and values in turn
		}
		return m
	}
	for name, c := range map[string]struct {
		listed []map[string]any
		change map[string]any
		role   string
		want   error
	}{
		"an admin":                      {listed: []map[string]any{active("user_alice", "admin")}, role: "admin"},
		"an owner":                      {listed: []map[string]any{active("user_alice", "owner")}, role: "owner"},
		"a member":                      {listed: []map[string]any{active("user_alice", "member")}, role: "member"},
		"a role of the organization":    {listed: []map[string]any{active("user_alice", "org-billing")}, role: "member"},
		"the first role alone":          {listed: []map[string]any{with("roles", nil)}, role: "admin"},
		"an active one after others":    {listed: []map[string]any{with("organization_id", "org_other"), with("status", "inactive"), active("user_alice", "owner")}, role: "owner"},
		"one of several roles is admin": {listed: []map[string]any{with("role", nil, "roles", []any{map[string]any{"slug": "x"}, map[string]any{"slug": "admin"}})}, role: "admin"},
		"nobody":                        {want: plugins.ErrUnauthenticated},
		"another user":                  {listed: []map[string]any{active("user_bob", "admin")}, want: plugins.ErrUnauthenticated},
		"no longer active":              {listed: []map[string]any{with("status", "inactive")}, want: plugins.ErrUnauthenticated},
		"invited only":                  {listed: []map[string]any{with("status", "pending")}, want: plugins.ErrUnauthenticated},
		"of another organization":       {listed: []map[string]any{with("organization_id", "org_other")}, want: plugins.ErrUnauthenticated},
		"a wrong API key":               {change: map[string]any{"apiKey": "sk_wrong"}, want: plugins.ErrUnavailable},
		"an API that is somewhere else": {change: map[string]any{"apiUrl": "http://127.0.0.1:1"}, want: plugins.ErrUnavailable},
		"no API key, the token's word":  {change: map[string]any{"apiKey": ""}, role: "admin"},
		"no organization and no role":   {change: map[string]any{"organizationId": ""}, role: ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := authtest.NewProvider(keys)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			workOS := newAPI()
			workOS.list(c.listed...)
			server := httptest.NewServer(workOS)
			defer server.Close()
			adapter := New()
			if err := adapter.Configure(t.Context(), settings(p, server.URL, c.change)); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = adapter.Close() }()
			id, err := adapter.Verify(t.Context(), auth.VerifyRequest{Token: p.Token(map[string]any{"role": "admin"})})
			if !errors.Is(err, c.want) || id.OrgRole != c.role {
				t.Errorf("got the role %q and %v, want %q and %v", id.OrgRole, err, c.role, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk_") {
				t.Errorf("the error contains the API key: %v", err)
			}
		})
	}
}

func TestTheAuthKitAddressIsFound(t *testing.T) {
	adapter := New()
	config := plugins.Config{JSON: json.RawMessage(`{"idpDomain":"example","clientId":"c","redirectUri":"https://r.example/v1/auth/callback","organizationId":"org_1"}`)}
	if err := adapter.Configure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = adapter.Close() }()
	d, err := adapter.Describe(t.Context())
	if err != nil || d.Issuer != "https://example.authkit.app" || d.AuthorizationServers[0] != d.Issuer || d.Audiences[0] != "c" || !d.Login {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                  "idpDomain: must be set",
		`{"idpDomain":"example.authkit.app"}`: "idpDomain: must be the subdomain alone",
		`{"idpDomain":"example/../x"}`:        "idpDomain: must be the subdomain alone",
		`{"idpDomain":"example","issuer":"https://id.example.com"}`:                     "issuer: means the same",
		`{"issuer":"http://id.example.com"}`:                                            "issuer: must be an https URL",
		`{"idpDomain":"example","apiUrl":"http://api.example.com"}`:                     "apiUrl: must be an https URL",
		`{"idpDomain":"example","apiUrl":""}`:                                           "apiUrl: must not be empty",
		`{"idpDomain":"example","redirectUri":"https://r.example/cb"}`:                  "clientId: must be set if redirectUri is",
		`{"idpDomain":"example","clientSecret":"hidden"}`:                               "clientId: must be set if clientSecret is",
		`{"idpDomain":"example","apikey":"hidden"}`:                                     `did you mean "apiKey"`,
		`{"idpDomain":"example","clientId":"c","redirectUri":"https://u:p@r.example/"}`: "redirectUri: must not contain a user",
	} {
		if err := New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(text)}); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("%s: configured with %v", text, err)
		}
		err := New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(text)})
		if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprint(err), "hidden") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
