package mcphttp

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

const (
	notFoundBody    = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Session not found","data":{"reason":"not_found"}},"id":null}`
	unavailableBody = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Session not found","data":{"reason":"unavailable"}},"id":null}`
	ping            = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
)

func TestAnotherCallersSessionLooksLikeAnUnknownOne(t *testing.T) {
	r := start(t, nil)
	owned := r.join(alice)
	for _, tc := range []struct {
		name string
		who  who
	}{
		{"never existed", who{"alice", "ws_one", "AAAAAAAAAAAAAAAAAAAAAAAAAA"}},
		{"another identity", who{"bob", "ws_one", owned.session}},
		{"another workspace of the same identity", who{"alice", "ws_two", owned.session}},
		{"an absurdly long id", who{"alice", "ws_one", strings.Repeat("A", 500)}},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			resp, body := r.say(method, tc.who, ping)
			if resp.StatusCode != 404 || body != notFoundBody || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s, %s: %d %s", tc.name, method, resp.StatusCode, body)
			}
		}
	}
	if resp, _ := r.say("POST", owned, ping); resp.StatusCode != 200 {
		t.Errorf("the owner's session should still exist, got %d", resp.StatusCode)
	}
}

func TestASessionIDStartsWithTheServersNameIfItHasOne(t *testing.T) {
	for replica, form := range map[string]string{"": `^[A-Z2-7]{26}$`, "b2": `^b2-[A-Z2-7]{26}$`} {
		r := start(t, func(o *Options) { o.Replica = replica })
		owned := r.join(alice)
		if !regexp.MustCompile(form).MatchString(owned.session) {
			t.Errorf("replica %q: session %q, want %s", replica, owned.session, form)
		}
		if resp, body := r.say("POST", owned, ping); resp.StatusCode != 200 {
			t.Errorf("replica %q: %d %s", replica, resp.StatusCode, body)
		}
	}
}

func TestOtherCallersSessionsLookLikeUnknownOnesWhileTheStoreIsUnavailable(t *testing.T) {
	store := &flaky{Store: memory.New()}
	r := start(t, func(o *Options) { o.Store = store })
	owned := r.join(alice)
	store.down.Store(true)
	for _, w := range []who{{"bob", "ws_one", owned.session}, {"bob", "ws_one", "AAAAAAAAAAAAAAAAAAAAAAAAAA"}} {
		resp, body := r.say("POST", w, ping)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || strings.Contains(body, "reason") {
			t.Errorf("%v: %d %s", w, resp.StatusCode, body)
		}
	}
	if resp, _ := r.say("POST", owned, ping); resp.StatusCode != 200 {
		t.Errorf("a live session should continue without the store, got %d", resp.StatusCode)
	}
	if resp, _ := r.say("POST", alice, hello("2025-11-25")); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("no session should be opened without a record, got %d", resp.StatusCode)
	}
	if resp, body := r.say("DELETE", owned, ""); resp.StatusCode != 200 || body != "" {
		t.Errorf("DELETE: %d %s", resp.StatusCode, body)
	}
	store.down.Store(false)
	if resp, body := r.say("POST", owned, ping); resp.StatusCode != 404 || body != notFoundBody {
		t.Errorf("a session deleted while the store was down should be gone immediately: %d %s", resp.StatusCode, body)
	}
	r.endpoint.writer.Flush(t.Context())
	if store.Store.(*memory.Store).Len() != 0 {
		t.Error("the flush should have deleted the record")
	}
}

func TestARecordWithoutATransportIsUnavailable(t *testing.T) {
	store := memory.New()
	before := start(t, func(o *Options) { o.Store = store })
	after := start(t, func(o *Options) { o.Store = store })
	w := before.join(alice)
	if resp, body := after.say("POST", w, ping); resp.StatusCode != 404 || body != unavailableBody {
		t.Errorf("on another process: %d %s", resp.StatusCode, body)
	}
	if resp, body := after.say("POST", who{"bob", "ws_one", w.session}, ping); resp.StatusCode != 404 || body != notFoundBody {
		t.Errorf("for another user: %d %s", resp.StatusCode, body)
	}
	if err := before.endpoint.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, body := after.say("POST", w, ping); body != unavailableBody {
		t.Errorf("the record should remain after a shutdown: %s", body)
	}
}

func TestDeleteEndsASession(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	if resp, body := r.say("DELETE", w, ""); resp.StatusCode != 200 || body != "" {
		t.Errorf("DELETE: %d %q", resp.StatusCode, body)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if resp, body := r.say(method, w, ping); resp.StatusCode != 404 || body != notFoundBody {
			t.Errorf("%s afterwards: %d %s", method, resp.StatusCode, body)
		}
	}
	if r.store.Len() != 0 || r.fakeNamespace.watched() != 0 {
		t.Errorf("left behind: %d records, %d watches", r.store.Len(), r.fakeNamespace.watched())
	}
	for _, method := range []string{"GET", "DELETE"} {
		if resp, body := r.say(method, alice, ""); resp.StatusCode != 400 || !strings.Contains(body, "Mcp-Session-Id") {
			t.Errorf("%s without a session id: %d %s", method, resp.StatusCode, body)
		}
	}
}

func TestDeleteAnswersPendingCalls(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	answer := make(chan string, 1)
	go func() {
		_, body := r.say("POST", w, callBody(5, "demo__wait", "{}"))
		answer <- body
	}()
	<-r.fakeNamespace.started
	r.say("DELETE", w, "")
	if body := <-answer; !strings.Contains(body, `"code":-32000`) || !strings.Contains(body, `"id":5`) {
		t.Errorf("the call in flight got %s", body)
	}
	if err := <-r.fakeNamespace.ended; err == nil {
		t.Error("the tool's call should have been cancelled")
	}
}

func TestTheRecordContainsTheUserWhoOpenedTheSession(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice, "2025-06-18")
	rec, err := r.store.Get(t.Context(), w.session)
	if err != nil {
		t.Fatal(err)
	}
	if rec.CreatedAt.IsZero() || rec.LastAccessedAt.IsZero() || len(w.session) < 26 {
		t.Errorf("record %+v", rec)
	}
	rec.CreatedAt, rec.LastAccessedAt, rec.ExpiresAt = time.Time{}, time.Time{}, time.Time{}
	want := sessionstore.Record{ID: w.session, Subject: "alice", Issuer: "https://idp.test", WorkspaceID: "ws_one",
		ProtocolVersion: "2025-06-18", ClientInfo: sessionstore.ClientInfo{Name: "probe", Version: "9"}}
	if rec != want {
		t.Errorf("got  %+v\nwant %+v", rec, want)
	}
}

func TestTheSessionLimitIsExact(t *testing.T) {
	r := start(t, func(o *Options) { o.MaxSessions = 100 })
	const tries = 2000
	var opened, refused atomic.Int64
	var mu sync.Mutex
	var ids []string
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range tries / 64 {
				resp, body := r.say("POST", alice, hello("2025-11-25"))
				switch {
				case resp.StatusCode == 200:
					opened.Add(1)
					mu.Lock()
					ids = append(ids, resp.Header.Get("Mcp-Session-Id"))
					mu.Unlock()
				case resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "" && strings.Contains(body, "-32000") && resp.Header.Get("Mcp-Session-Id") == "":
					refused.Add(1)
				default:
					t.Errorf("%d %s", resp.StatusCode, body)
				}
			}
		})
	}
	group.Wait()
	if opened.Load() != 100 || refused.Load() != tries/64*64-100 {
		t.Errorf("%d opened, %d refused", opened.Load(), refused.Load())
	}
	for _, id := range ids {
		r.say("DELETE", who{"alice", "ws_one", id}, "")
	}
	for range 100 {
		r.join(alice)
	}
	// A failed initialize releases its place.
	r.say("DELETE", r.liveOne(), "")
	for range 10 {
		if resp, body := r.say("POST", alice, strings.Replace(hello("2025-11-25"), `"capabilities":{}`, `"capabilities":{"sampling":5}`, 1)); resp.StatusCode == 200 && strings.Contains(body, "result") {
			t.Fatalf("a broken initialize opened a session: %s", body)
		}
	}
	r.join(alice)
}

func TestInitializeReportsMissingFields(t *testing.T) {
	r := start(t, nil)
	for _, c := range []struct{ name, params, want string }{
		{"no params", ``, "protocolVersion"},
		{"empty params", `,"params":{}`, "protocolVersion"},
		{"null", `,"params":{"protocolVersion":null,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, "protocolVersion"},
		{"no capabilities", `,"params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"x","version":"1"}}`, "capabilities"},
		{"capabilities that are a list", `,"params":{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{"name":"x","version":"1"}}`, "capabilities"},
		{"capabilities that are too large", `,"params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"a":{"b":"` + strings.Repeat("a", 64<<10) + `"}}},"clientInfo":{"name":"x","version":"1"}}`, "capabilities of at most 64 KiB"},
		{"no name", `,"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"version":"1"}}`, "clientInfo"},
		{"a version that is a number", `,"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":1}}`, "clientInfo"},
	} {
		resp, body := r.say("POST", alice, `{"jsonrpc":"2.0","id":"h","method":"initialize"`+c.params+`}`)
		if resp.StatusCode != 400 || !strings.Contains(body, `"code":-32602`) || !strings.Contains(body, c.want) || !strings.Contains(body, `"id":"h"`) || resp.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
		}
	}
	if n := len(r.endpoint.live.All()); n != 0 {
		t.Errorf("%d sessions were opened", n)
	}
}

// liveOne returns a client with an open session.
func (r *rig) liveOne() who {
	return who{"alice", "ws_one", r.endpoint.live.All()[0].ID}
}

// newStillEndpoint returns an endpoint without a listener, for tests with synctest's fake clock.
func newStillEndpoint(t *testing.T, store sessionstore.Store, ttl time.Duration) *Endpoint {
	e := New(Options{Tools: newFakeNamespace(), Access: &people{}, Store: store, Features: config.Features{}, Logger: hclog.NewNullLogger(), SessionTTL: ttl})
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func caller(subject, workspace string) core.Caller {
	return core.Caller{Identity: core.Identity{Issuer: "https://idp.test", Subject: subject}, Workspace: core.Workspace{ID: workspace}}
}

// admit opens a session without HTTP.
func admit(t *testing.T, e *Endpoint, c core.Caller) *session {
	t.Helper()
	if err := e.live.Reserve("somebody"); err != nil {
		t.Fatal(err)
	}
	messages, _, _ := parseBody([]byte(hello("2025-11-25")))
	hello, f := readHello(&messages[0])
	if f != nil {
		t.Fatal(f.message)
	}
	s, err := e.open(e.root, c, hello)
	e.live.EndCalls(1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// beginOne starts a call with the given ID and returns it.
func beginOne(t *testing.T, e *Endpoint, s *session, id string) *call {
	t.Helper()
	k := newCall(Message{ID: json.RawMessage(id), Method: "ping"}, s.Owner, s)
	if f := e.begin(e.root, s, []*call{k}, sse.NewResponse(1, false)); f != nil {
		t.Fatal(f.message)
	}
	return k
}

func (e *Endpoint) endOne(k *call) { e.run(k) }

func TestAnIdleSessionEndsExactlyAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		e := newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		s := admit(t, e, me)
		id := s.ID
		for range 5 {
			<-time.After(59 * time.Minute)
			if _, f := e.session(e.root, []byte(id), me); f != nil {
				t.Fatal("each request should restart the timeout")
			}
		}
		if rec := e.live.Records()[0]; !rec.LastAccessedAt.Equal(time.Now()) { // the value that a new store gets
			t.Errorf("last accessed at %v, want now", rec.LastAccessedAt)
		}
		<-time.After(time.Hour - time.Millisecond)
		synctest.Wait()
		if e.live.Find([]byte(id)) == nil {
			t.Fatal("the session ended too early")
		}
		<-time.After(2 * time.Millisecond)
		synctest.Wait()
		if e.live.Find([]byte(id)) != nil {
			t.Fatal("the session did not end after its idle time")
		}
		if _, f := e.absent(e.root, id, me); string(f.data) != `{"reason":"not_found"}` {
			t.Errorf("want not_found for an expired session, got %s", f.data)
		}
		<-time.After(2 * time.Second)
		if store.Len() != 0 {
			t.Error("the record should have been deleted")
		}
		if e.Sessions() != 0 {
			t.Errorf("%d sessions remain", e.Sessions())
		}
	})
}

func TestASessionWithARunningCallIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newStillEndpoint(t, memory.New(), time.Hour)
		s := admit(t, e, caller("alice", "ws_one"))
		k := beginOne(t, e, s, "1")
		<-time.After(5 * time.Hour)
		synctest.Wait()
		if e.live.Find([]byte(s.ID)) == nil {
			t.Fatal("the session ended during its call")
		}
		e.endOne(k)
		<-time.After(time.Hour + time.Second)
		synctest.Wait()
		if e.live.Find([]byte(s.ID)) != nil {
			t.Error("the session should end an hour after its last call")
		}
	})
}

func TestASessionsPendingRequestsAreBounded(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	var calls []*call
	s := r.endpoint.live.All()[0]
	for i := range 1000 {
		calls = append(calls, beginOne(t, r.endpoint, s, strconv.Itoa(i)))
	}
	if resp, body := r.say("POST", w, callBody("one more", "demo__echo", "{}")); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "1000") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	r.endpoint.endOne(calls[0])
	if resp, body := r.say("POST", w, callBody("one more", "demo__echo", "{}")); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, k := range calls[1:] {
		r.endpoint.endOne(k)
	}
}

func TestALongClientNameIsTruncatedInTheRecord(t *testing.T) {
	r := start(t, nil)
	resp, _ := r.say("POST", alice, strings.ReplaceAll(hello("2025-11-25"), "probe", strings.Repeat("é", 10000)))
	rec, err := r.store.Get(t.Context(), resp.Header.Get("Mcp-Session-Id"))
	if err != nil || rec.ClientInfo.Name != strings.Repeat("é", 100) {
		t.Errorf("%d bytes, %v", len(rec.ClientInfo.Name), err)
	}
}

func TestCloseLetsCallsFinishAndRefusesNewOnes(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	answer := make(chan string, 1)
	go func() {
		_, body := r.say("POST", w, callBody(1, "demo__wait", "{}"))
		answer <- body
	}()
	<-r.fakeNamespace.started
	closed := make(chan error, 1)
	go func() { closed <- r.endpoint.Close(t.Context()) }()
	for { // until the shutdown has started
		resp, body := r.say("POST", alice, hello("2025-11-25"))
		if resp.StatusCode == 503 {
			break
		}
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	if resp, _ := r.say("POST", w, ping); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a new call during shutdown: %d", resp.StatusCode)
	}
	close(r.fakeNamespace.release)
	if body := <-answer; !strings.Contains(body, "alice/ws_one") {
		t.Errorf("the call in flight got %s", body)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
