package workos

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
)

// inMemory sends all requests to an api in memory, so that the clock of a bubble does not advance during a request.
type inMemory struct{ api *api }

func (m inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	m.api.ServeHTTP(rec, req)
	return rec.Result(), nil
}

func asking(t *testing.T, workOS *api) *members {
	m := newMembers("https://api.workos.com", apiKey, organization, hclog.NewNullLogger())
	m.client.Transport = inMemory{workOS}
	t.Cleanup(m.close)
	return m
}

func TestMembersOutliveTheAPIByFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workOS := newAPI()
		m := asking(t, workOS)
		if role, err := m.role(t.Context(), "user_alice"); role != "admin" || err != nil {
			t.Fatalf("got %q, %v", role, err)
		}
		workOS.breakDown(true)
		pass(memberKeep - time.Second)
		if role, err := m.role(t.Context(), "user_alice"); role != "admin" || err != nil {
			t.Errorf("known, with the API down: got %q, %v", role, err)
		}
		if _, err := m.role(t.Context(), "user_bob"); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("new, with the API down: got %v, want unavailable", err)
		}
		pass(time.Second)
		if _, err := m.role(t.Context(), "user_alice"); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("known for five minutes: got %v, want unavailable", err)
		}
	})
}

func TestAFormerMemberLosesAccessWithinHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workOS := newAPI()
		m := asking(t, workOS)
		_, _ = m.role(t.Context(), "user_alice")
		workOS.list()
		pass(memberFresh)
		if _, err := m.role(t.Context(), "user_alice"); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("got %v, want a refusal", err)
		}
		workOS.breakDown(true)
		if _, err := m.role(t.Context(), "user_alice"); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("afterwards, with the API down: got %v, want unavailable", err)
		}
	})
}

func TestAMembershipIsCachedForLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workOS := newAPI()
		m := asking(t, workOS)
		for range 60 {
			if _, err := m.role(t.Context(), "user_alice"); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if asked := workOS.count(); asked != 2 {
			t.Errorf("got %d requests in a minute, want 2", asked)
		}
	})
}

func TestAMembershipAppliesOnlyToItsOwnUser(t *testing.T) {
	workOS := newAPI()
	workOS.lax = true
	if _, err := asking(t, workOS).role(t.Context(), "user_bob"); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestKnownMembershipsAreBounded(t *testing.T) {
	m := asking(t, newAPI())
	for i := range memberLimit + 10 {
		user := fmt.Sprint("user_", i)
		if _, err := m.learn(user, []membership{{UserID: user, OrganizationID: organization, Status: "active"}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.known) > memberLimit {
		t.Errorf("%d members are known, want at most %d", len(m.known), memberLimit)
	}
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the bubble's clock, not the machine's
