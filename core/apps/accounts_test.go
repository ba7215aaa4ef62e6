package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// accountTokens gives each account a token that contains its name, and a new one after each rejection.
type accountTokens struct {
	mu       sync.Mutex
	lists    core.AppLists
	serial   map[string]int
	unlinked map[string]bool
}

type tokenOf struct {
	of      *accountTokens
	account string
}

func (a *accountTokens) Authorizer(account string) remote.Authorizer { return tokenOf{a, account} }

func (t tokenOf) Token(_ context.Context, refused core.Secret) (remote.Token, error) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.of.unlinked[t.account] {
		return remote.Token{}, core.Errorf(core.CodeLoginNeeded, "the account was unlinked")
	}
	token := func() core.Secret { return core.Secret(fmt.Sprintf("token-%s-%d", t.account, t.of.serial[t.account])) }
	if refused == token() {
		t.of.serial[t.account]++
	}
	return remote.Token{Access: token()}, nil
}

func (*accountTokens) Discover(_ context.Context, _ core.Remote, c remote.Challenge) bool {
	return c.Metadata == "https://far.example/metadata"
}

func (a *accountTokens) Published(context.Context, string, string) (core.AppLists, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists, nil
}

func (a *accountTokens) Publish(_ context.Context, _ string, lists core.AppLists) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists = lists
	return true, nil
}

func (*accountTokens) Listed(context.Context, string, string, string) (map[string]core.AppLists, error) {
	return nil, nil
}

type bearerKey struct{}

// accountServer is a remote app that returns the call's token. If renews is set, it rejects each new token on
// its first call.
func accountServer(t testing.TB, renews bool) (address string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: ctx.Value(bearerKey{}).(string)}}}, nil, nil
	})
	served := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer token-")
		if !ok || renews && strings.HasSuffix(bearer, "-0") && rand.IntN(3) == 0 {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://far.example/metadata"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		served.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bearerKey{}, bearer)))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/far", calls
}

func callAs(ctx context.Context, m *Manager, app, account string) (string, error) {
	raw, err := m.Call(ctx, ws, app, &interact.Call{Account: account, Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"whoami","arguments":{}}`)}})
	if err != nil {
		return "", err
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) != 1 {
		return "", fmt.Errorf("result %s: %w", raw, err)
	}
	return result.Content[0].Text, nil
}

func accountManager(t testing.TB) (*Manager, *accountTokens) {
	t.Helper()
	tokens := &accountTokens{serial: map[string]int{}, unlinked: map[string]bool{}}
	m, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		private(o)
		o.Accounts = tokens
	})
	return m, tokens
}

func TestAnAppThatAdvertisesItsMetadataIsInstalledWithAccounts(t *testing.T) {
	m, _ := accountManager(t)
	address, _ := accountServer(t, false)
	app := install(t, m, source.Request{URL: address})
	if app.Auth != core.AuthUser || app.Status != core.StateRunning || app.ToolCount != 0 {
		t.Errorf("installed as %+v", app)
	}
	if _, err := callAs(t.Context(), m, "far", ""); core.CodeOf(err) != core.CodeLoginNeeded {
		t.Errorf("a call without an account: %v", err)
	}
	m.AccountLinked(core.Account{ID: "a", Workspace: ws, App: "far"})
	testkit.Eventually(t, "the tools of the app are published", func() bool { return len(m.Tools(ws)) == 1 })
	if _, err := m.Install(t.Context(), ws, source.Request{URL: address, ServerName: "fixed", Transport: &source.Transport{Auth: &source.Auth{Type: "none"}}}); core.CodeOf(err) != core.CodeInstallFailed {
		t.Errorf("a server that is configured to need no credentials: %v", err)
	}
}

func TestAnAppWithAccountsHasNoCredentialsOfItsOwn(t *testing.T) {
	m, _ := accountManager(t)
	address, _ := accountServer(t, false)
	for _, header := range []string{"Authorization", "authorization", "AUTHORIZATION", "dpop", "Cookie"} {
		headers := map[string]core.Secret{header: "Bearer fixed"}
		for _, auth := range []*source.Auth{{Type: core.AuthUser}, {Type: core.AuthShared}, {Type: core.AuthExchange}} {
			if _, err := m.Install(t.Context(), ws, source.Request{URL: address, ServerName: "own", Transport: &source.Transport{Auth: auth, Headers: headers}}); core.CodeOf(err) != core.CodeBadRequest {
				t.Errorf("%s with %s: %v", header, auth.Type, err)
			}
		}
		if _, err := m.Install(t.Context(), ws, source.Request{URL: address, ServerName: "own", Transport: &source.Transport{Headers: headers}}); core.CodeOf(err) != core.CodeInstallFailed {
			t.Errorf("%s that the app rejects: %v", header, err)
		}
	}
}

// Every result names the account of its call while tokens are rejected and renewed and accounts come and go.
func TestNoCallUsesAnotherAccount(t *testing.T) {
	const people, rounds = 40, 25
	m, tokens := accountManager(t)
	address, calls := accountServer(t, true)
	var names []string
	for i := range 3 {
		names = append(names, install(t, m, source.Request{URL: address, ServerName: fmt.Sprintf("far-%d", i)}).Name)
	}
	var answered, refused atomic.Int64
	var working sync.WaitGroup
	for person := range people {
		working.Go(func() {
			for round := range rounds {
				account := fmt.Sprintf("p%d-%d", person, round%2)
				got, err := callAs(t.Context(), m, names[(person+round)%len(names)], account)
				switch {
				case core.CodeOf(err) == core.CodeLoginNeeded && strings.HasSuffix(account, "-1") && person%5 == 0:
					refused.Add(1) // it was unlinked
				case err != nil:
					t.Errorf("%s: %v", account, err)
				case !strings.HasPrefix(got, account+"-"):
					t.Errorf("a call with %s used %s", account, got)
				default:
					answered.Add(1)
				}
				if round == rounds/2 && person%5 == 0 {
					gone := fmt.Sprintf("p%d-1", person)
					tokens.mu.Lock()
					tokens.unlinked[gone] = true
					tokens.mu.Unlock()
					m.AccountUnlinked(gone)
				}
			}
		})
	}
	working.Wait()
	if n := calls.Load(); n != answered.Load() || n+refused.Load() != people*rounds {
		t.Errorf("%d results, %d refusals and %d calls to the app for %d calls", answered.Load(), refused.Load(), n, people*rounds)
	}
}

// BenchmarkCallWithAnAccount compares a call with a linked account to one with fixed credentials.
func BenchmarkCallWithAnAccount(b *testing.B) {
	for app, account := range map[string]string{"user": "a", "fixed": ""} {
		b.Run(app, func(b *testing.B) {
			m, _ := accountManager(b)
			address, _ := accountServer(b, false)
			auth := &source.Auth{Type: core.AuthUser}
			if account == "" {
				auth = &source.Auth{Type: "bearer", Token: "token-fixed-1"}
			}
			if _, err := m.Install(b.Context(), ws, source.Request{URL: address, ServerName: app, Transport: &source.Transport{Auth: auth}}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := callAs(b.Context(), m, app, account); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
