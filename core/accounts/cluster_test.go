package accounts

import (
	"os"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// databases is the PostgreSQL server that all tests here share.
var databases testenv.Databases

func TestMain(m *testing.M) { os.Exit(databases.Around(m).Run()) }

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
