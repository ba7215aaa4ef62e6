package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// eachSealed runs a test on an encrypted SQLite file, and on three servers that share an encrypted PostgreSQL database.
func eachSealed(t *testing.T, test func(t *testing.T, all []*Store)) {
	t.Run("sqlite", func(t *testing.T) {
		s := openIn(t, Options{Path: t.TempDir() + "/ropewalk.db", Keys: keysOf(t, seal.NewKey())})
		test(t, []*Store{s})
	})
	t.Run("three servers on postgres", func(t *testing.T) {
		o := Options{URL: core.Secret(newDatabase(t)), Keys: keysOf(t, seal.NewKey())}
		test(t, []*Store{openIn(t, o), openIn(t, o), openIn(t, o)})
	})
}

func linkOne(t *testing.T, s *Store) core.Account {
	t.Helper()
	put(t, s, core.Installation{ID: "i", Workspace: core.DefaultWorkspaceID, Name: "far", InstalledAt: time.UnixMilli(7).UTC()})
	a, err := s.LinkAccount(t.Context(), core.Account{
		Workspace: core.DefaultWorkspaceID, Owner: "usr_owner", App: "far", Name: "main", State: core.AccountActive, LinkedAt: time.UnixMilli(9),
		Grant: core.Grant{AccessToken: "access", RefreshToken: "refresh", TokenURL: "https://idp.example/token"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Only one of the servers uses a single-use token to renew an account. Afterwards, all servers have the new token.
func TestOneServerAtATimeRenewsAnAccount(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		a := linkOne(t, all[0])
		var renewals, atOnce atomic.Int64
		var calls errgroup.Group
		for i := range 30 {
			s := all[i%len(all)]
			if len(all) == 1 && i > 0 {
				break // package accounts runs one renewal at a time per process
			}
			calls.Go(func() error {
				got, err := s.RenewAccount(t.Context(), a.ID, func(_ context.Context, a *core.Account) (bool, error) {
					if atOnce.Add(1) > 1 {
						t.Error("two servers renewed at the same time")
					}
					defer atOnce.Add(-1)
					if a.Grant.RefreshToken != "refresh" {
						return false, nil
					}
					renewals.Add(1)
					<-time.After(50 * time.Millisecond) // simulates the response time of the authorization server
					a.Grant.AccessToken, a.Grant.RefreshToken = "access 2", "refresh 2"
					return true, nil
				})
				if err == nil && got.Grant.AccessToken != "access 2" {
					err = errors.New("an old token")
				}
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			t.Error(err)
		}
		if n := renewals.Load(); n != 1 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestARenewalThatFailsChangesNothing(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		a := linkOne(t, all[0])
		failed := errors.New("down")
		if _, err := all[0].RenewAccount(t.Context(), a.ID, func(_ context.Context, a *core.Account) (bool, error) {
			a.Grant.RefreshToken = "lost"
			return false, failed
		}); !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
		if now, err := all[0].Account(t.Context(), a.ID); err != nil || now.Grant.RefreshToken != "refresh" {
			t.Errorf("got %v", err)
		}
	})
}

// In SQLite, a renewal holds no lock while it waits for the authorization server.
func TestARenewalDoesNotOverwriteALaterLoginOrUnlink(t *testing.T) {
	s := openIn(t, Options{Path: t.TempDir() + "/ropewalk.db", Keys: keysOf(t, seal.NewKey())})
	a := linkOne(t, s)
	again := a
	again.LinkedAt, again.Grant.AccessToken, again.Grant.RefreshToken = time.UnixMilli(20), "access of the login", "refresh of the login"
	got, err := s.RenewAccount(t.Context(), a.ID, func(ctx context.Context, a *core.Account) (bool, error) {
		if _, err := s.LinkAccount(ctx, again); err != nil {
			t.Error(err)
		}
		a.State = core.AccountLoginNeeded
		return true, errors.New("the previous login has ended")
	})
	if err != nil || got.State != core.AccountActive || got.Grant.AccessToken != again.Grant.AccessToken {
		t.Errorf("after a login: %s %v", got.State, err)
	}
	if now, err := s.Account(t.Context(), a.ID); err != nil || now.State != core.AccountActive || now.Grant.RefreshToken != again.Grant.RefreshToken {
		t.Errorf("the login was overwritten: %s %v", now.State, err)
	}
	if _, err := s.RenewAccount(t.Context(), a.ID, func(ctx context.Context, a *core.Account) (bool, error) {
		if _, err := s.UnlinkAccount(ctx, a.ID); err != nil {
			t.Error(err)
		}
		a.Grant.RefreshToken = "refresh that nobody uses"
		return true, nil
	}); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("after an unlink: %v", err)
	}
	due, err := s.ClaimRevocations(t.Context(), 10, 0)
	var tokens []string
	for _, one := range due {
		tokens = append(tokens, one.Grant.RefreshToken.Reveal())
	}
	slices.Sort(tokens)
	if err != nil || !slices.Equal(tokens, []string{"refresh of the login", "refresh that nobody uses"}) {
		t.Errorf("the tokens to revoke are %q, %v", tokens, err)
	}
}

func TestWithoutAKeyNoTokenIsStored(t *testing.T) {
	s := open(t)
	put(t, s, core.Installation{ID: "i", Workspace: core.DefaultWorkspaceID, Name: "far", InstalledAt: time.UnixMilli(7).UTC()})
	_, err := s.LinkAccount(t.Context(), core.Account{Workspace: core.DefaultWorkspaceID, Owner: "usr_owner", App: "far", Name: "main", State: core.AccountActive})
	if core.CodeOf(err) != core.CodeNotConfigured {
		t.Errorf("got %v", err)
	}
}

func TestTheDefaultMovesToAnotherAccount(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		first, s := linkOne(t, all[0]), all[0]
		second := first
		second.ID, second.Name = "", "second"
		second, err := s.LinkAccount(t.Context(), second)
		if err != nil || !first.Default || second.Default || second.ID == first.ID {
			t.Fatalf("%+v %v", second, err)
		}
		if _, err := s.UnlinkAccount(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		if now, err := s.Account(t.Context(), second.ID); err != nil || !now.Default {
			t.Errorf("the remaining account should be the default: %v", err)
		}
		if _, err := s.UnlinkAccount(t.Context(), first.ID); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("an account should not be unlinked twice: %v", err)
		}
	})
}

func TestAnAccountsListsAreKeptUntilItIsUnlinked(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		s := all[0]
		a := linkOne(t, s)
		for _, version := range []string{"1", "2"} {
			if err := s.PutAccountLists(t.Context(), a, core.AppLists{Version: version}); err != nil {
				t.Fatal(err)
			}
		}
		if lists, err := s.AccountLists(t.Context(), a.Workspace, a.App, ""); err != nil || len(lists) != 1 || lists[a.ID].Version != "2" {
			t.Errorf("%+v: %v", lists, err)
		}
		if lists, err := s.AccountLists(t.Context(), a.Workspace, "near", a.ID); err != nil || len(lists) != 0 {
			t.Errorf("the lists of another app: %+v: %v", lists, err)
		}
		if _, err := s.UnlinkAccount(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.PutAccountLists(t.Context(), a, core.AppLists{Version: "3"}); err != nil {
			t.Errorf("after it was unlinked: %v", err)
		}
		if lists, err := s.AccountLists(t.Context(), a.Workspace, a.App, ""); err != nil || len(lists) != 0 {
			t.Errorf("the lists after the unlink: %+v: %v", lists, err)
		}
	})
}
