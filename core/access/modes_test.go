package access

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestEachModeLimitsWhoMayCall(t *testing.T) {
	const no = "unauthenticated"
	cases := []struct {
		mode    string
		key     core.Secret
		adapter bool
		dev     bool

		noneAPI, noneMCP   string // no credential
		keyAPI, keyMCP     string // the key as a bearer
		tokenAPI, tokenMCP string // a valid token of the adapter
		wrongAPI, wrongMCP string // neither a key nor a token
		log                string
	}{
		{
			mode: "dev", dev: true, noneAPI: "owner", noneMCP: "owner", keyAPI: "owner", keyMCP: "owner",
			tokenAPI: "owner", tokenMCP: "owner", wrongAPI: "owner", wrongMCP: "owner", log: "dev mode",
		},
		{
			mode: "key", key: testKey, noneAPI: no, noneMCP: no, keyAPI: "owner", keyMCP: no,
			tokenAPI: no, tokenMCP: no, wrongAPI: no, wrongMCP: no, log: "set auth.adapter to accept tokens",
		},
		{
			mode: "adapter", adapter: true, noneAPI: no, noneMCP: no, keyAPI: no, keyMCP: no,
			tokenAPI: "alice", tokenMCP: "alice", wrongAPI: no, wrongMCP: no, log: "SERVICE_API_KEY is not set",
		},
		{
			mode: "both", key: testKey, adapter: true, noneAPI: no, noneMCP: no, keyAPI: "owner", keyMCP: no,
			tokenAPI: "alice", tokenMCP: "alice", wrongAPI: no, wrongMCP: no, log: "accepts SERVICE_API_KEY and tokens",
		},
	}
	for _, c := range cases {
		t.Run(c.mode, func(t *testing.T) {
			var log bytes.Buffer
			state := openState(t)
			o := Options{APIKey: c.key, Users: state, Cookies: state, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}
			if c.adapter {
				o.Providers = only(newProvider("https://idp", "alice"))
			}
			a := New(o)
			if a.Dev() != c.dev {
				t.Errorf("Dev is %v", a.Dev())
			}
			for _, try := range []struct{ bearer, api, mcp string }{
				{"", c.noneAPI, c.noneMCP}, {testKey, c.keyAPI, c.keyMCP},
				{"token-of-alice", c.tokenAPI, c.tokenMCP}, {"wrong", c.wrongAPI, c.wrongMCP},
				{testKey + "x", c.wrongAPI, c.wrongMCP}, {testKey[:8], c.wrongAPI, c.wrongMCP},
			} {
				want(t, "/v1 with "+try.bearer, outcome(a.API(t.Context(), try.bearer, "")), try.api)
				want(t, "/mcp with "+try.bearer, outcome(a.MCP(t.Context(), try.bearer, "")), try.mcp)
			}
			if !strings.Contains(log.String(), c.log) {
				t.Errorf("the log does not contain %q: %s", c.log, log.String())
			}
			if strings.Contains(log.String(), testKey) {
				t.Error("the log contains the key")
			}
		})
	}
}

func TestTheAPIKeyIsNeverShownToTheAdapter(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, testKey, p)
	_, _ = a.MCP(t.Context(), testKey, "")
	_, _ = a.API(t.Context(), testKey, "")
	if n := p.calls.Load(); n != 0 {
		t.Fatalf("the adapter got %d requests", n)
	}
}

func TestAnInvalidBearerIsRefusedDespiteAValidCookie(t *testing.T) {
	a, _ := newAccess(t, testKey, newProvider("https://idp", "alice"))
	cookie, err := a.Login(t.Context(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "cookie alone", outcome(a.API(t.Context(), "", cookie)), "owner")
	want(t, "valid bearer and cookie", outcome(a.API(t.Context(), "token-of-alice", cookie)), "alice")
	want(t, "invalid bearer and cookie", outcome(a.API(t.Context(), "wrong", cookie)), "unauthenticated")
}

func TestTheAdapterReceivesTheConfiguredAudiences(t *testing.T) {
	cases := []struct {
		name string
		o    Options
		p    Provider
		want string
	}{
		{"those that are set", Options{Audiences: []string{"https://base"}}, Provider{Audiences: []string{"https://base/mcp"}}, "https://base https://base/mcp"},
		{"\"any\" turns the check off", Options{Audiences: []string{"https://base"}}, Provider{AnyAudience: true}, ""},
		{"no audience is set", Options{}, Provider{}, noAudience},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider("https://idp", "alice")
			var log bytes.Buffer
			c.p.Adapter = p
			c.o.Providers, c.o.Logger = []Provider{c.p}, hclog.New(&hclog.LoggerOptions{Output: &log})
			state := openState(t)
			c.o.Users, c.o.Cookies = state, state
			want(t, "the token", outcome(New(c.o).MCP(t.Context(), "token-of-alice", "")), "alice")
			want(t, "the audiences that the adapter received", strings.Join(p.asked[0].Audiences, " "), c.want)
			if logged := strings.Contains(log.String(), "auth.audience: any"); logged != c.p.AnyAudience {
				t.Errorf("the log says that the check is off: %v", logged)
			}
		})
	}
}

func TestAfterASwapOnlyTheNewProviderIsUsed(t *testing.T) {
	before, after := newProvider("https://old", "alice"), newProvider("https://new", "bob")
	a, _ := newAccess(t, "", before)
	want(t, "before", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
	a.SetProviders(only(after), nil)
	want(t, "the old provider's token, cached or not", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
	want(t, "the new provider's token", outcome(a.MCP(t.Context(), "token-of-bob", "")), "bob")
}

func TestATokenBeingVerifiedDuringASwapIsVerifiedByTheNewProvider(t *testing.T) {
	before, after := newProvider("https://old", "alice"), newProvider("https://new", "bob")
	before.block = make(chan struct{})
	a, _ := newAccess(t, "", before)
	answer := make(chan string)
	go func() { answer <- outcome(a.MCP(t.Context(), "token-of-alice", "")) }()
	testkit.Eventually(t, "the old adapter is called", func() bool { return before.calls.Load() == 1 })
	a.SetProviders(only(after), nil)
	close(before.block)
	want(t, "a token verified by the removed provider", <-answer, "unauthenticated")
	if after.calls.Load() != 1 {
		t.Error("the new provider was not called")
	}
}

func TestAReloadCannotTurnDevModeOn(t *testing.T) {
	a, _ := newAccess(t, "", newProvider("https://idp", "alice"))
	a.SetProviders(only(nil), nil)
	if a.Dev() {
		t.Fatal("a reload switched to dev mode")
	}
	want(t, "nothing", outcome(a.API(t.Context(), "", "")), "unauthenticated")
	want(t, "an empty bearer for /mcp", outcome(a.MCP(t.Context(), "", "")), "unauthenticated")
	want(t, "the old provider's token", outcome(a.API(t.Context(), "token-of-alice", "")), "unauthenticated")

	dev, _ := newAccess(t, "", nil)
	dev.SetProviders(only(newProvider("https://idp")), nil)
	if dev.Dev() {
		t.Fatal("dev mode was not turned off by an adapter")
	}
	want(t, "nothing, after dev mode", outcome(dev.API(t.Context(), "", "")), "unauthenticated")
}

func TestTheDiscoveryDocumentsComeFromTheAdapter(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, "", p)
	p.set(func(p *provider) { p.down = true })
	_, err := a.Describe(t.Context())
	want(t, "describe while down", string(core.CodeOf(err)), "unavailable")
	_, err = a.Metadata(t.Context())
	want(t, "metadata while down", string(core.CodeOf(err)), "unavailable")
	p.set(func(p *provider) { p.down = false })
	about, err := a.Describe(t.Context())
	if err != nil || about.Issuer != "https://idp" {
		t.Errorf("got %+v, %v", about, err)
	}
	doc, err := a.Metadata(t.Context())
	if err != nil || string(doc) != `{"issuer":"https://idp"}` {
		t.Errorf("got %s, %v", doc, err)
	}
	p.set(func(p *provider) { p.down = true })
	if about, err := a.Describe(t.Context()); err != nil || about.Issuer != "https://idp" {
		t.Errorf("a known token was verified again: %+v, %v", about, err)
	}
	none, _ := newAccess(t, testKey, nil)
	for _, err := range []error{second(none.Describe(t.Context())), second(none.Metadata(t.Context()))} {
		want(t, "without an adapter", string(core.CodeOf(err)), "not_found")
	}
}

func second[T any](_ T, err error) error { return err }

var _ auth.Login = (*provider)(nil)
