package cluster

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const tokenLife = 20 * time.Second // the lifetime of the tokens that the servers share

// linked starts three servers with one database and an app that requires accounts, and links accounts for the owner.
func linked(t *testing.T, own bool, accounts ...string) (*harness.AccountApp, *cluster) {
	t.Helper()
	a := harness.StartAccountApp(t, int(tokenLife.Seconds()))
	a.Own.Store(own)
	d := startServers(t, harness.Env("ROPEWALK_STORAGE_KEY="+seal.NewKey().Reveal()))
	d.servers[0].Install(t, map[string]any{"url": a.URL, "serverName": "far"})
	for _, who := range accounts {
		b := harness.NewBrowser(t)
		b.SetCookie(t, d.servers[0].URL, "account", who)
		begun := d.servers[0].Object(t, "POST", "/v1/accounts", map[string]any{"app": "far", "name": who})
		b.LinkAccount(t, begun["url"].(string))
	}
	for _, s := range d.servers {
		s.WaitForStatus(t, "far", "running")
		waitFor(t, "the tools of the accounts are listed", func() bool {
			return strings.Count(s.Do(t, "GET", "/v1/tools?server=far", nil).Body, `"server":"far"`) == len(accounts)+1
		})
	}
	return a, d
}

// account returns the only account, as the server s sees it.
func account(t *testing.T, s *harness.Server) (one struct {
	ID, State string
	ExpiresAt time.Time
}) {
	t.Helper()
	var list struct{ Accounts []json.RawMessage }
	got := s.Do(t, "GET", "/v1/accounts", nil)
	if err := json.Unmarshal([]byte(got.Body), &list); err != nil || len(list.Accounts) != 1 || json.Unmarshal(list.Accounts[0], &one) != nil {
		t.Fatalf("the accounts: %d %s", got.Status, got.Body)
	}
	return one
}

// callAtOnce sends calls to all servers at the same time and returns the number of failures on each server. It calls
// answered after each successful call.
func (d *cluster) callAtOnce(t *testing.T, calls int, answered func()) (failed []int) {
	counts := make([]atomic.Int64, len(d.servers))
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range calls {
		all.Go(func() {
			<-start
			at := i % len(d.servers)
			resp, err := http.Post(d.servers[at].URL+"/v1/tools/call", "application/json", strings.NewReader(`{"tool":"far__whoami"}`))
			if err != nil {
				counts[at].Add(1)
				return
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "alice") {
				t.Logf("%s: %d %s %v", serverNames[at], resp.StatusCode, body, err)
				counts[at].Add(1)
				return
			}
			answered()
		})
	}
	close(start)
	all.Wait()
	for i := range counts {
		failed = append(failed, int(counts[i].Load()))
	}
	return failed
}

// One person makes 200 calls on three servers when the token has expired. The provider revokes the grant if a refresh token
// is used twice. In the last round, a server is killed in the middle. core/accounts tests what happens when a server is
// killed while it renews a token.
func TestThreeServersRenewATokenOnceFor200Calls(t *testing.T) {
	t.Parallel()
	const calls, rounds = 200, 2
	a, d := linked(t, false, "alice")
	for round := range rounds {
		victim := d.servers[1]
		expires := account(t, d.servers[0]).ExpiresAt
		if !testkit.Within(harness.Timeout, func() bool { return time.Now().After(expires) }) {
			t.Fatalf("the token has not expired: it expires at %v", expires)
		}
		before, _ := a.Provider.Renewals(t)
		var once sync.Once
		began := time.Now()
		failed := d.callAtOnce(t, calls, func() {
			if round == rounds-1 {
				once.Do(victim.Kill)
			}
		})
		took := time.Since(began)
		renewals, revoked := a.Provider.Renewals(t)
		renewals -= before
		t.Logf("round %d: %d calls in %v, %v failed, %d renewals, %d revoked grants", round+1, calls, took, failed, renewals, revoked)
		if most := 1 + int(took/(tokenLife*9/10)); renewals < 1 || renewals > most { // on a busy machine, the new token may expire, too
			t.Errorf("%d renewals in %v", renewals, took)
		}
		if failed[0]+failed[2] > 0 || failed[1] > 0 && round < rounds-1 || revoked > 0 {
			t.Errorf("failed calls on each server: %v; revoked grants: %d", failed, revoked)
		}
		if state := account(t, d.servers[2]).State; state != "active" {
			t.Errorf("the account is %s", state)
		}
	}
}

// The two accounts list different tools. The tools of the default account come first.
func TestAChangedDefaultAccountIsAnnouncedOnAllServers(t *testing.T) {
	t.Parallel()
	_, d := linked(t, true, "alice", "bob")
	for _, at := range []int{0, 2} {
		changed := make(chan struct{}, 1)
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
				select {
				case changed <- struct{}{}:
				default:
				}
			},
		})
		c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: d.servers[at].URL + "/mcp/me"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		first := func() string {
			list, err := c.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range list.Tools {
				if strings.HasPrefix(tool.Name, "far__") {
					return tool.Name
				}
			}
			return ""
		}
		var accounts struct {
			Accounts []struct {
				ID, Name string
				Default  bool
			}
		}
		if err := json.Unmarshal([]byte(d.servers[0].Do(t, "GET", "/v1/accounts", nil).Body), &accounts); err != nil {
			t.Fatal(err)
		}
		before := first()
		for _, one := range accounts.Accounts {
			if !one.Default {
				d.servers[0].Object(t, "PATCH", "/v1/accounts/"+one.ID, map[string]any{"default": true})
			}
		}
		for now := before; now == before; now = first() {
			select {
			case <-changed:
			case <-time.After(harness.Timeout):
				t.Fatalf("server %s announces no change and lists %s first", serverNames[at], now)
			}
		}
	}
}
