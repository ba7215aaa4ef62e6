package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func knownAs(issuer, subject, email string) core.Identity {
	return core.Identity{Issuer: issuer, Subject: subject, User: core.User{Email: email}}
}

func TestAnIdentityIsLinkedByTheEmailOfATrustedIssuer(t *testing.T) {
	const before, now = "https://before", "https://now"
	for name, c := range map[string]struct {
		known  []core.Identity // separate users, in this order
		seen   core.Identity
		sameAs []string
		linked bool // to the first user
	}{
		"the same email address":             {[]core.Identity{knownAs(before, "1", "ann@example.com")}, knownAs(now, "a", "ann@example.com"), []string{before}, true},
		"the same address in different case": {[]core.Identity{knownAs(before, "1", "Ann@example.com")}, knownAs(now, "a", "ann@EXAMPLE.com"), []string{"https://third", before}, true},
		"another email address":              {[]core.Identity{knownAs(before, "1", "ann@example.com")}, knownAs(now, "a", "anna@example.com"), []string{before}, false},
		"an issuer that is not trusted":      {[]core.Identity{knownAs(before, "1", "ann@example.com")}, knownAs(now, "a", "ann@example.com"), []string{"https://third"}, false},
		"no trusted issuers":                 {[]core.Identity{knownAs(before, "1", "ann@example.com")}, knownAs(now, "a", "ann@example.com"), nil, false},
		"no verified email address":          {[]core.Identity{knownAs(before, "1", "")}, knownAs(now, "a", ""), []string{before}, false},
		"two users with the same address":    {[]core.Identity{knownAs(before, "1", "ann@example.com"), knownAs(before, "2", "ann@example.com")}, knownAs(now, "a", "ann@example.com"), []string{before}, false},
		"the same issuer":                    {[]core.Identity{knownAs(now, "1", "ann@example.com")}, knownAs(now, "a", "ann@example.com"), []string{now}, false},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *Store) {
				var users []core.User
				for _, id := range c.known {
					users = append(users, provision(t, s, id))
				}
				got := provision(t, s, c.seen, c.sameAs...)
				if linked := got.ID == users[0].ID; linked != c.linked {
					t.Errorf("linked: %v, want %v", linked, c.linked)
				}
				if again := provision(t, s, c.seen); again.ID != got.ID {
					t.Errorf("the identity later belongs to another user: %+v and %+v", got, again)
				}
				if first := provision(t, s, c.known[0], now); first.ID != users[0].ID {
					t.Errorf("the first identity now belongs to %+v", first)
				}
			})
		})
	}
}

func TestASecondSubjectWithALinkedUsersEmailIsADifferentUser(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ann := provision(t, s, knownAs("https://before", "1", "ann@example.com"))
		if linked := provision(t, s, knownAs("https://now", "a", "ann@example.com"), "https://before"); linked.ID != ann.ID {
			t.Fatal("not linked")
		}
		if other := provision(t, s, knownAs("https://now", "b", "ann@example.com"), "https://before"); other.ID == ann.ID {
			t.Error("a second subject of the same issuer became the user")
		}
	})
}

func TestARevocationOfOneIdentityLeavesTheLoginsOfTheOther(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		old, now := knownAs("https://before", "1", "ann@example.com"), knownAs("https://now", "a", "ann@example.com")
		old.User = provision(t, s, old)
		now.User = provision(t, s, now, "https://before")
		for hash, id := range map[string]core.Identity{"old": old, "now": now} {
			if err := s.PutCookie(t.Context(), core.Cookie{Hash: hash, Identity: id, ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Revoke(t.Context(), core.Revocation{Issuer: old.Issuer, Subject: old.Subject}); err != nil {
			t.Fatal(err)
		}
		_, gone := s.Cookie(t.Context(), "old")
		wantCodes(t, core.CodeNotFound, map[string]error{"the login with the identity that was revoked": gone})
		if c, err := s.Cookie(t.Context(), "now"); err != nil || c.Identity.Issuer != now.Issuer || c.Identity.Subject != now.Subject || c.Identity.User.ID != old.User.ID {
			t.Errorf("the other login: %+v, %v", c, err)
		}
		if err := s.Revoke(t.Context(), core.Revocation{Issuer: now.Issuer, Subject: now.Subject}); err != nil {
			t.Fatal(err)
		}
		_, gone = s.Cookie(t.Context(), "now")
		wantCodes(t, core.CodeNotFound, map[string]error{"the other login": gone})
	})
}

func TestMergedUsersAreOneAndNothingIsLost(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		s := all[0]
		one, two := knownAs("https://before", "1", "ann@example.com"), knownAs("https://now", "a", "ann@work.example")
		one.User, two.User = provision(t, s, one), provision(t, s, two)
		team, err := s.CreateWorkspace(t.Context(), "Team", one.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []struct {
			user string
			role core.Role
		}{{one.User.ID, core.RoleMember}, {two.User.ID, core.RoleMember}} {
			if err := s.PutMember(t.Context(), core.DefaultWorkspaceID, m.user, m.role); err != nil {
				t.Fatal(err)
			}
		}
		key, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: "k", User: one.User, Workspace: core.DefaultWorkspaceID, Role: core.RoleMember}, "hash")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutCookie(t.Context(), core.Cookie{Hash: "login", Identity: one, ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		converse := func(owner, title string) {
			t.Helper()
			c, err := s.CreateConversation(t.Context(), core.Conversation{Workspace: core.DefaultWorkspaceID, Owner: owner, Title: title})
			if err != nil {
				t.Fatal(err)
			}
			grow(t, s, core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: owner, ID: c.ID}, []core.Message{said("user", "apple "+title)})
		}
		for i := range 3 {
			converse(one.User.ID, fmt.Sprintf("one%d", i))
			converse(two.User.ID, fmt.Sprintf("two%d", i))
		}
		compactAll(t, s)
		converse(one.User.ID, "one3")
		put(t, s, core.Installation{ID: "i", Workspace: core.DefaultWorkspaceID, Name: "far", InstalledAt: time.UnixMilli(7).UTC()})
		for _, a := range []core.Account{{Owner: two.User.ID, Name: "main"}, {Owner: one.User.ID, Name: "main"}, {Owner: one.User.ID, Name: "work"}} {
			a.Workspace, a.App, a.State, a.LinkedAt, a.Grant.AccessToken = core.DefaultWorkspaceID, "far", core.AccountActive, time.UnixMilli(9), "access"
			if _, err := s.LinkAccount(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}

		if err := s.MergeUsers(t.Context(), one.User.ID, two.User.ID); err != nil {
			t.Fatal(err)
		}
		for _, id := range []core.Identity{one, two} {
			if got := provision(t, s, id); got.ID != two.User.ID {
				t.Errorf("%s is %+v", id.Issuer, got)
			}
		}
		if role, err := s.Member(t.Context(), two.User.ID, team.ID); err != nil || role != core.RoleAdmin {
			t.Errorf("in the team: %s, %v", role, err)
		}
		if list, err := s.Workspaces(t.Context(), two.User); err != nil || len(list) != 4 { // default, personal, the other's personal one, team
			t.Errorf("%+v, %v", list, err)
		}
		if k, err := s.APIKey(t.Context(), "hash"); err != nil || k.ID != key.ID || k.User.ID != two.User.ID || len(k.Issuers) != 2 {
			t.Errorf("the key: %+v, %v", k, err)
		}
		if c, err := s.Cookie(t.Context(), "login"); err != nil || c.Identity.User.ID != two.User.ID || c.Identity.Issuer != one.Issuer {
			t.Errorf("the login: %+v, %v", c, err)
		}
		wantFound := func(search string, want int) {
			t.Helper()
			page, err := s.Conversations(t.Context(), core.DefaultWorkspaceID, two.User.ID, core.ConversationQuery{Search: search, Limit: 50})
			if err != nil || page.TotalCount != want || len(page.Conversations) != want {
				t.Errorf("%q finds %d, %v, want %d", search, page.TotalCount, err, want)
			}
		}
		wantFound("", 7)
		wantFound("apple ", 7)
		wantFound("one2 ", 1)
		wantFound("two2 ", 1)
		compactAll(t, s)
		converse(two.User.ID, "four")
		wantFound("apple ", 8)
		wantFound("one3 ", 1)
		accounts, err := s.Accounts(t.Context(), core.DefaultWorkspaceID)
		if err != nil || len(accounts) != 2 || accounts[0].Owner != two.User.ID || accounts[1].Owner != two.User.ID || accounts[0].Default == accounts[1].Default {
			t.Errorf("the accounts: %+v, %v", accounts, err)
		}
		_, gone := s.User(t.Context(), one.User.ID)
		wantCodes(t, core.CodeNotFound, map[string]error{"the first one": gone, "again": s.MergeUsers(t.Context(), one.User.ID, two.User.ID)})
		wantCodes(t, core.CodeForbidden, map[string]error{
			"the owner": s.MergeUsers(t.Context(), core.Owner().User.ID, two.User.ID), "into the owner": s.MergeUsers(t.Context(), two.User.ID, core.Owner().User.ID),
		})
		wantCodes(t, core.CodeInvalidInput, map[string]error{"with themselves": s.MergeUsers(t.Context(), two.User.ID, two.User.ID)})
	})
}
