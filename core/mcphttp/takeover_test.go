package mcphttp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// durable is a store that supports takeovers, like redis and postgres.
type durable struct {
	*memory.Store
	mu sync.Mutex
}

func newDurable() *durable { return &durable{Store: memory.New()} }

func (d *durable) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, err := d.Get(ctx, rec.ID)
	if err != nil || now.Owner != owner {
		return false, err
	}
	if ttl == 0 {
		ttl = time.Until(now.ExpiresAt)
	}
	return true, d.Put(ctx, rec, ttl)
}

// kill makes a server stop renewing its lease, as if it had been killed.
func kill(e *Endpoint) {
	e.stop()
	e.running.Wait()
}

// use looks up a session in the same way as a request.
func use(e *Endpoint, id string, c core.Caller) (*session, string) {
	s, f := e.session(e.root, []byte(id), c)
	if f == nil {
		return s, ""
	}
	var data struct{ Reason string }
	if json.Unmarshal(f.data, &data) == nil {
		return nil, data.Reason
	}
	return nil, f.message
}

func TestADeadServersSessionContinuesElsewhereWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		a, b := newStillEndpoint(t, store, time.Hour), newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		before := admit(t, a, me)
		if err := before.Tools.SetLevel(t.Context(), "warning"); err != nil {
			t.Fatal(err)
		}
		before.SetLevel("warning")
		a.recordState(t.Context(), before)
		<-time.After(time.Minute)
		kill(a)
		began := time.Now()
		after, why := use(b, before.ID, me)
		if after == nil || time.Since(began) > 2*time.Second {
			t.Fatalf("after %v: %q", time.Since(began), why)
		}
		if after.ID != before.ID || after.Revision() != before.Revision() || string(after.Capabilities) != string(before.Capabilities) || after.Record().ClientInfo != before.Record().ClientInfo {
			t.Errorf("got %+v, want %+v", after.Record(), before.Record())
		}
		if state := after.RecordFor("x").State; !strings.Contains(state, `"level":"warning"`) || !strings.Contains(state, `"takeovers":1`) {
			t.Errorf("its state is %s", state)
		}
		if b.Sessions() != 1 || b.live.Reserve(me.User.ID) != nil {
			t.Errorf("%d sessions are counted", b.Sessions())
		}
		b.live.Release(me.User.ID)
		b.live.EndCalls(1)
	})
}

func TestOnlyOneOfManyServersTakesOverASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		a, me := newStillEndpoint(t, store, time.Hour), caller("alice", "ws_one")
		id := admit(t, a, me).ID
		kill(a)
		var others []*Endpoint
		for range 5 {
			others = append(others, newStillEndpoint(t, store, time.Hour))
		}
		var group sync.WaitGroup
		for _, e := range others {
			for range 4 {
				group.Go(func() { use(e, id, me) })
			}
		}
		group.Wait()
		owners := 0
		for _, e := range others {
			if s := e.live.Find([]byte(id)); s != nil && e.covered(s, time.Now()) {
				owners++
			}
		}
		if owners != 1 {
			t.Errorf("%d servers have the session", owners)
		}
	})
}

func TestALiveServerGivesUpAnIdleSessionAndKeepsABusyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		a, b := newStillEndpoint(t, store, time.Hour), newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		s := admit(t, a, me)
		k := beginOne(t, a, s, "1")
		if _, why := use(b, s.ID, me); why != reasonUnavailable {
			t.Errorf("while a call is in flight: %q", why)
		}
		if a.live.Find([]byte(s.ID)) == nil {
			t.Fatal("the session ended during its call")
		}
		a.endOne(k)
		if moved, why := use(b, s.ID, me); moved == nil {
			t.Fatalf("an idle session: %q", why)
		}
		if a.Sessions() != 0 {
			t.Error("two servers have the session")
		}
		if back, why := use(a, s.ID, me); back == nil || b.Sessions() != 0 {
			t.Errorf("taking the session back: %q; the other server has %d", why, b.Sessions())
		}
	})
}

func TestAServerThatWasSuspendedDoesNotServeSessionsThatAnotherTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		a, b := newStillEndpoint(t, store, time.Hour), newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		s := admit(t, a, me)
		kill(a) // a is suspended: nothing renews its lease
		if taken, why := use(b, s.ID, me); taken == nil {
			t.Fatal(why)
		}
		if a.live.Find([]byte(s.ID)) != s {
			t.Fatal("the first server already knows that it lost the session, so this test checks nothing")
		}
		if a.covered(s, time.Now()) || a.confirm(s) {
			t.Error("the first server continues to serve a session that it lost")
		}
		if a.Sessions() != 0 || b.Sessions() != 1 {
			t.Errorf("sessions: %d and %d", a.Sessions(), b.Sessions())
		}
	})
}

func TestADeletedUsersSessionIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		a, b := newStillEndpoint(t, store, time.Hour), newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		me.User.ID = "usr_1"
		id := admit(t, a, me).ID
		kill(a)
		again := me
		again.User.ID = "usr_2" // deleted and provisioned again at the next login
		if s, why := use(b, id, again); s != nil || why != reasonNotFound {
			t.Errorf("got %v, %q", s, why)
		}
		if s, why := use(b, id, caller("bob", "ws_one")); s != nil || why != reasonNotFound {
			t.Errorf("another user: got %v, %q", s, why)
		}
	})
}

func TestSessionsAreWrittenAgainToAStoreThatLostItsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDurable()
		a, me := newStillEndpoint(t, store, time.Hour), caller("alice", "ws_one")
		id := admit(t, a, me).ID
		store.mu.Lock()
		store.Store = memory.New()
		store.mu.Unlock()
		<-time.After(5 * time.Second)
		synctest.Wait()
		if s, why := use(a, id, me); s == nil {
			t.Errorf("the session ended: %q", why)
		}
		if rec, err := store.Get(t.Context(), id); err != nil || rec.Owner == "" {
			t.Errorf("its record is %+v, %v", rec, err)
		}
	})
}

func TestATakenOverSessionRereadsItsListsAndReusesNoNumbers(t *testing.T) {
	store := newDurable()
	before := start(t, func(o *Options) { o.Store = store })
	w := before.join(alice)
	if err := before.endpoint.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := start(t, func(o *Options) { o.Store = store })
	if resp, body := after.say("POST", w, ping); resp.StatusCode != 200 {
		t.Fatalf("after a restart: %d %s", resp.StatusCode, body)
	}
	s := after.endpoint.live.Find([]byte(w.session))
	g := s.OpenStream(57) // the last event of the previous server
	if g == nil {
		t.Fatal("no stream")
	}
	unsent, _ := g.Take()
	var all strings.Builder
	for _, e := range unsent {
		all.Write(e.Text)
		if e.Number < 1<<40 {
			t.Errorf("event %d may have been sent by the previous server", e.Number)
		}
	}
	for _, kind := range []core.Kind{core.KindTools, core.KindPrompts, core.KindResources} {
		if !strings.Contains(all.String(), listChangedMethod(kind)) {
			t.Errorf("no %s in %s", listChangedMethod(kind), all.String())
		}
	}
	s.CloseStream(g)
	if resp, body := after.say("DELETE", w, ""); resp.StatusCode != 200 {
		t.Errorf("DELETE: %d %s", resp.StatusCode, body)
	}
	if resp, body := after.say("POST", w, ping); resp.StatusCode != 404 || body != notFoundBody {
		t.Errorf("after DELETE: %d %s", resp.StatusCode, body)
	}
}

func TestASessionBelongsToTheUserAcrossIdentityProviders(t *testing.T) {
	person := func(issuer, subject, user, key string) core.Caller {
		return core.Caller{Identity: core.Identity{Issuer: issuer, Subject: subject, User: core.User{ID: user}, Scope: core.Scope{Key: key}}, Workspace: core.Workspace{ID: "ws_one"}}
	}
	opened := person("https://before", "1", "usr_ann", "")
	withKey := person(core.IssuerKey, "key_1", "usr_ann", "key_1")
	for name, c := range map[string]struct {
		opened, comes core.Caller
		want          bool
	}{
		"the same identity":                    {opened, opened, true},
		"another identity of the same user":    {opened, person("https://now", "a", "usr_ann", ""), true},
		"another user":                         {opened, person("https://now", "a", "usr_bob", ""), false},
		"the same subject with another issuer": {opened, person("https://now", "1", "usr_bob", ""), false},
		"the user's API key":                   {opened, withKey, false},
		"the user, for an API key's session":   {withKey, opened, false},
		"the same API key":                     {withKey, withKey, true},
		"another API key of the user's":        {withKey, person(core.IssuerKey, "key_2", "usr_ann", "key_2"), false},
		"the owner, in dev mode":               {opened, core.Caller{Identity: core.Owner(), Workspace: core.Workspace{ID: "ws_one"}}, false},
	} {
		rec := newSession(c.opened, sessionstore.Record{Subject: c.opened.Subject, Issuer: c.opened.Issuer, WorkspaceID: "ws_one"}, []byte("{}"))
		if got := owns(rec.RecordFor("lease"), c.comes); got != c.want {
			t.Errorf("%s: according to its record: %v", name, got)
		}
		if got := rec.OwnedBy(c.comes); got != c.want {
			t.Errorf("%s: on this server: %v", name, got)
		}
		c.comes.Workspace.ID = "ws_two"
		if owns(rec.RecordFor("lease"), c.comes) || rec.OwnedBy(c.comes) {
			t.Errorf("%s: in another workspace", name)
		}
	}
}
