package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// databases is the PostgreSQL server that all tests here share.
var databases testenv.Databases

func TestMain(m *testing.M) {
	if url := os.Getenv(renewAt); url != "" {
		if err := renewOnce(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(databases.Around(m).Run())
}

// The environment variables of the test executable when it is a server that renews one account.
const (
	renewAt   = "ROPEWALK_TEST_RENEW_AT" // the database
	renewKey  = "ROPEWALK_TEST_RENEW_KEY"
	renewWhat = "ROPEWALK_TEST_RENEW_ACCOUNT"
)

func renewOnce(url string) error {
	ctx := context.Background()
	keys, err := seal.Parse(core.Secret(os.Getenv(renewKey)))
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Options{URL: core.Secret(url), Keys: keys})
	if err != nil {
		return err
	}
	_, err = New(Options{Store: s}).Authorizer(os.Getenv(renewWhat)).Token(ctx, "")
	return errors.Join(err, s.Close())
}

// A server is killed while it renews a token, and a peer server renews it. A login is needed only if the provider had
// already used up the refresh token, because the new one is lost (docs/accounts.md).
func TestAServerIsKilledWhileItRenews(t *testing.T) {
	for _, c := range []struct {
		name    string
		usedUp  bool
		code    core.Code
		current int // grants in force at the end
	}{{"before the provider used up the refresh token", false, "", 1}, {"afterwards", true, core.CodeLoginNeeded, 0}} {
		t.Run(c.name, func(t *testing.T) {
			key := seal.NewKey()
			keys, err := seal.Parse(key)
			if err != nil {
				t.Fatal(err)
			}
			url := databases.New(t)
			s, err := store.Open(t.Context(), store.Options{URL: core.Secret(url), Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			p := newProvider(t)
			arrived, killed := make(chan struct{}), make(chan struct{})
			var first atomic.Bool
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				if r.PostForm.Get("grant_type") != "refresh_token" || first.Swap(true) {
					p.ServeHTTP(w, r)
					return
				}
				if c.usedUp {
					p.ServeHTTP(httptest.NewRecorder(), r)
				}
				close(arrived)
				<-killed
			}))
			t.Cleanup(front.Close)
			p.metadata["token_endpoint"] = front.URL + "/token"
			peer := rigOn(t, s, p, core.RemoteAuth{Type: core.AuthUser})
			a := peer.link(t, p, peer.caller, "")
			peer.expire(t, a.ID)
			server := exec.CommandContext(t.Context(), os.Args[0])
			server.Env = append(os.Environ(), renewAt+"="+url, renewKey+"="+key.Reveal(), renewWhat+"="+a.ID)
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			<-arrived
			result := make(chan error, 1)
			go func() { // waits for the row
				_, err := peer.Authorizer(a.ID).Token(t.Context(), "")
				result <- err
			}()
			_ = server.Process.Kill()
			_ = server.Wait()
			close(killed)
			if err := <-result; (err != nil) != (c.code != "") || err != nil && core.CodeOf(err) != c.code {
				t.Errorf("the peer server: %v, want %q", err, c.code)
			}
			if len(p.current) != c.current {
				t.Errorf("%d grants are in force", len(p.current))
			}
		})
	}
}

// Three servers on one database, one person, 200 calls at the moment of expiry, and a provider that ends the grant if a
// refresh token is used twice.
func TestThreeServersRenewOnce(t *testing.T) {
	keys, err := seal.Parse(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	url := core.Secret(databases.New(t))
	p := newProvider(t)
	var servers []*rig
	for range 3 {
		s, err := store.Open(t.Context(), store.Options{URL: url, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers = append(servers, rigOn(t, s, p, core.RemoteAuth{Type: core.AuthUser}))
	}
	a := servers[0].link(t, p, servers[0].caller, "")
	for round := range 3 {
		servers[0].expire(t, a.ID)
		for _, r := range servers {
			r.Changed(a.ID)
		}
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() {
				if _, err := servers[i%3].Authorizer(a.ID).Token(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if n := p.count("/token refresh_token"); n != round+1 {
			t.Errorf("after %d expiries there were %d renewals", round+1, n)
		}
	}
	if now, err := servers[2].store.Account(t.Context(), a.ID); err != nil || now.State != core.AccountActive || len(p.current) != 1 {
		t.Errorf("the account is %s, and %d grants are in force: %v", now.State, len(p.current), err)
	}
}
