package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/limits"
)

func TestOneUserCannotUseUpAnotherUsersStreamsOrCalls(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.Streams: 1}, CallsPerSecond: 1})
	})
	for _, name := range []string{"alice", "bob"} {
		h.access.user(name, core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	}
	as := func(name string) map[string]string { return map[string]string{"Authorization": "Bearer " + name} }
	tool := func(name string) reply {
		return h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`, header: as(name)})
	}
	began, allowed := time.Now(), 0
	r := tool("alice")
	for ; r.StatusCode == 200 && allowed <= 2+int(time.Since(began)/time.Second); r = tool("alice") { // one more call is allowed each second
		allowed++
	}
	if allowed < 2 || r.StatusCode != 429 || r.code() != "rate_limited" || r.Header.Get("Retry-After") == "" || !strings.Contains(r.body, "limits.callsPerSecond") {
		t.Errorf("after %d calls in %v: %d %s", allowed, time.Since(began), r.StatusCode, r.body)
	}
	if r := tool("bob"); r.StatusCode != 200 {
		t.Errorf("another user's call: %d %s", r.StatusCode, r.body)
	}
	follow := func(name string) string {
		conn, r := dial(t, h.addr)
		if _, err := conn.Write([]byte("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + name + "\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	if got := follow("alice"); got != "HTTP/1.1 200 OK" {
		t.Fatal(got)
	}
	if got := follow("alice"); !strings.HasPrefix(got, "HTTP/1.1 429") {
		t.Errorf("a second stream: %s", got)
	}
	if got := follow("bob"); got != "HTTP/1.1 200 OK" {
		t.Errorf("another user's stream: %s", got)
	}
}

func TestAStreamCountsAgainstTheLimitWhileItIsOpen(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.Streams: 1}})
	})
	for range 3 {
		if r := h.do(t, call{method: "HEAD", path: "/v1/events"}); r.StatusCode != 200 {
			t.Fatalf("HEAD: %d", r.StatusCode)
		}
	}
	for range 3 { // the fake's logs end immediately
		var r reply
		h.await(t, "the logs are refused", func() bool {
			r = h.do(t, call{method: "GET", path: "/v1/apps/echo/logs?follow=true"})
			return r.StatusCode == 200
		})
	}
	h.await(t, "the stream is refused", func() bool {
		resp, _ := h.listen(t, nil)
		return resp.StatusCode == 200
	})
	if r := h.do(t, call{method: "GET", path: "/v1/apps/echo/logs?follow=true"}); r.StatusCode != 429 || !strings.Contains(r.body, "limits.streams") {
		t.Errorf("logs while another stream is open: %d %s", r.StatusCode, r.body)
	}
}

func TestAChatIsRefusedOnceTheDaysTokensAreUsedUp(t *testing.T) {
	conversations := newFakeConversations()
	h := open(t, newAccess(), func(o *Options) {
		o.Chat = newChat(t, conversations, &fakeTools{}, config.Models{}, func(o *chat.Options) { o.TokensPerDay = 100 })
	})
	conversations.report = core.UsageReport{Totals: core.UsageTotals{InputTokens: 60, OutputTokens: 40}}
	r := h.do(t, call{method: "POST", path: "/v1/chat", body: `{"message":"x"}`})
	if r.StatusCode != 429 || !strings.Contains(r.body, "limits.tokensPerDay") || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestTheAccessLogHasOneLineForEachRequest(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.AccessLog = true
		o.Logger.SetLevel(3) // info
	})
	h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`, header: map[string]string{"X-Request-Id": "r1", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}})
	log := h.log.String()
	for _, want := range []string{"request completed", "method=POST", "path=/v1/tools/call", "status=200", "duration=", "bytes=", "address=127.0.0.1", "user=usr_owner", "workspace=ws_default", "tool=a__b", "request_id=r1", "route=/v1/tools/call", "trace_id=4bf92f3577b34da6a3ce929d0e0e4736"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not contain %q: %s", want, log)
		}
	}
}
