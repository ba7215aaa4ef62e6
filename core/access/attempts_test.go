package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestLoginAttemptsAreLimitedPerClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Users: memory{}, APIKey: testKey})
		for i := range 1000 {
			err := a.CountWrongKey("203.0.113.7", "203.0.113.7")
			if refused := err != nil; refused != (i >= attemptBurst) {
				t.Fatalf("attempt %d: %v", i+1, err)
			}
		}
		err, ok := errors.AsType[*core.Error](a.CountWrongKey("203.0.113.7", "203.0.113.7"))
		if !ok || err.Code != core.CodeRateLimited || err.RetryAfter <= 0 || err.RetryAfter > attemptEvery {
			t.Errorf("got %v, retry after %v", err, err.RetryAfter)
		}
		if err := a.CountWrongKey("203.0.113.8", "203.0.113.8"); err != nil {
			t.Errorf("another client is locked out: %v", err)
		}
		<-time.After(err.RetryAfter)
		if err := a.CountWrongKey("203.0.113.7", "203.0.113.7"); err != nil {
			t.Errorf("after waiting for RetryAfter: %v", err)
		}
	})
}

// One client cannot start so many logins that other clients' pending logins are dropped.
func TestBrowserLoginsAreLimitedPerClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Users: memory{}, APIKey: testKey})
		begun := 0
		for range pendingLife / (100 * time.Millisecond) {
			if err := a.AllowBrowserLogin("203.0.113.7"); err == nil {
				begun++
			} else if core.CodeOf(err) != core.CodeRateLimited {
				t.Fatal(err)
			}
			<-time.After(100 * time.Millisecond)
		}
		if begun < browserLoginBurst+500 || begun > maxPending/10 {
			t.Errorf("one client began %d logins, but the server keeps %d pending ones", begun, maxPending)
		}
		if err := a.AllowBrowserLogin("203.0.113.8"); err != nil {
			t.Errorf("another client is locked out: %v", err)
		}
	})
}

// A flood of logins from a whole network displaces only its own logins, not other people's, and expired ones first.
func TestAClientThatStartsManyLoginsDropsOnlyItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPending(nil)
		put := func(key, client string) {
			if err := p.put(t.Context(), key, client, key, time.Now().Add(pendingLife)); err != nil {
				t.Fatal(err)
			}
		}
		put("victim", "203.0.113.8")
		<-time.After(time.Second)
		for i := range maxPending + 500 {
			put(fmt.Sprint(i), fmt.Sprintf("2001:db8:1:%x::1", i%1000))
		}
		if len(p.steps) != maxPending {
			t.Errorf("%d logins are pending", len(p.steps))
		}
		if _, err := take[string](t.Context(), p, "victim"); err != nil {
			t.Errorf("another client's login is gone: %v", err)
		}
		<-time.After(pendingLife)
		for i := range maxPending {
			put(fmt.Sprint("later", i), fmt.Sprintf("10.0.%d.%d", i/256, i%256))
		}
		if _, err := take[string](t.Context(), p, "later0"); err != nil || len(p.held) != len(p.steps) {
			t.Errorf("it was dropped before expired ones: %v; %d clients have %d", err, len(p.held), len(p.steps))
		}
	})
}

func TestAddressesInOneNetworkCountAsOneClient(t *testing.T) {
	for given, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "unknown": "unknown",
	} {
		if got := network(given); got != want {
			t.Errorf("network(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestAWholeNetworkMayMakeAFewTimesAsManyAttemptsAsOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Users: memory{}, APIKey: testKey})
		allowed := 0
		for i := range 1000 {
			if a.CountWrongKey(fmt.Sprintf("2001:db8:7:%x::1", i), "203.0.113.7") == nil {
				allowed++
			}
		}
		if allowed != siteFactor*attemptBurst {
			t.Errorf("a /48 was allowed %d attempts at once", allowed)
		}
		if err := a.CountWrongKey("2001:db8:8::1", "203.0.113.8"); err != nil {
			t.Errorf("another network is locked out: %v", err)
		}
	})
}

// A device asks for a login before anybody has logged in, so the server must not store much for it.
func TestADevicesLoginTakesLittleStorage(t *testing.T) {
	a, _ := newAccess(t, "", newProvider("https://idp", "alice"))
	if _, err := a.AskForLogin(t.Context(), Device{Name: "laptop", Redirect: "http://127.0.0.1:8000/done"}); err != nil {
		t.Error(err)
	}
	_, err := a.AskForLogin(t.Context(), Device{Name: "laptop", Redirect: "http://127.0.0.1:8000/" + strings.Repeat("x", 1000)})
	if core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("a redirect address of 1,000 bytes: %v", err)
	}
}
