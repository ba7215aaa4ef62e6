package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func encoded(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// listen opens an event stream. The server has subscribed by the time it returns.
func (h *testServer) listen(t testing.TB, header map[string]string) (*http.Response, *bufio.Reader) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.addr+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.access.key)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp, bufio.NewReader(resp.Body)
}

// next reads one event, including its empty line.
func next(r *bufio.Reader) (string, error) {
	var event strings.Builder
	for {
		line, err := r.ReadString('\n')
		event.WriteString(line)
		if err != nil || line == "\n" {
			return event.String(), err
		}
	}
}

func TestEventsReachOnlyTheirWorkspaceAndAreEncodedAsDocumented(t *testing.T) {
	h := open(t, newAccess(), nil)
	resp, first := h.listen(t, nil)
	_, second := h.listen(t, nil)
	_, stranger := h.listen(t, map[string]string{"X-Workspace-Id": "ws_second"})
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-cache" || resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	ui := &core.UI{Name: "Echo", Icon: "e", PrimaryView: core.PrimaryView{ResourceURI: "ui://echo/main"}}
	for _, c := range []struct {
		name string
		data any
		want string
	}{
		{core.EventBundleInstalled, core.BundleInstalled{Name: "echo", BundleName: "@acme/echo", Status: core.StateRunning, UI: ui}, `{"name":"echo","bundleName":"@acme/echo","status":"running","ui":{"name":"Echo","icon":"e","primaryView":{"resourceUri":"ui://echo/main"}}}`},
		{core.EventBundleInstalled, core.BundleInstalled{Name: "echo", BundleName: "@acme/echo", Status: core.StateRunning}, `{"name":"echo","bundleName":"@acme/echo","status":"running","ui":null}`},
		{core.EventBundleInstallFailed, core.BundleInstallFailed{Source: core.SourceURL, Error: core.CodeInstallFailed, Message: "m"}, `{"name":"","source":"url","error":"install_failed","message":"m"}`},
		{core.EventBundleUninstalled, core.BundleUninstalled{Name: "echo"}, `{"name":"echo"}`},
		{core.EventBundleCrashed, core.BundleCrashed{Name: "echo", RestartAttempt: 1}, `{"name":"echo","restartAttempt":1}`},
		{core.EventBundleRecovered, core.BundleRecovered{Name: "echo"}, `{"name":"echo"}`},
		{core.EventBundleDead, core.BundleDead{Name: "echo", Message: "3 attempts\nfailed"}, `{"name":"echo","message":"3 attempts\nfailed"}`},
		{core.EventDataChanged, core.DataChanged{Server: "echo", Tool: "put", Timestamp: core.Stamp(time.Date(2026, 11, 20, 8, 0, 0, 0, time.FixedZone("", 3600)))}, `{"server":"echo","tool":"put","timestamp":"2026-11-20T07:00:00.000Z"}`},
	} {
		h.bus.Publish(core.Event{Name: c.name, Workspace: core.DefaultWorkspaceID, Data: c.data})
		want := "event: " + c.name + "\ndata: " + c.want + "\n\n"
		for _, r := range []*bufio.Reader{first, second} {
			if got, err := next(r); got != want || err != nil {
				t.Errorf("got %q, want %q (%v)", got, want, err)
			}
		}
	}
	h.bus.Publish(core.Event{Name: core.EventHeartbeat, Data: core.Heartbeat{Timestamp: core.Stamp(time.Date(2026, 11, 20, 8, 0, 0, 0, time.FixedZone("", 3600)))}})
	if got, _ := next(stranger); got != "event: heartbeat\ndata: {\"timestamp\":\"2026-11-20T07:00:00.000Z\"}\n\n" {
		t.Errorf("the other workspace's reader got %q first", got)
	}
}

func TestADisconnectedReadersStreamIsClosed(t *testing.T) {
	h := open(t, newAccess(), nil)
	resp, _ := h.listen(t, nil)
	if n := h.streams.Count(); n != 1 {
		t.Fatalf("%d streams", n)
	}
	resp.Body.Close()
	h.await(t, "the stream is still open", func() bool { return h.streams.Count() == 0 })
}

// await waits for a condition that no channel signals.
func (h *testServer) await(t testing.TB, or string, what func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !what(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal(or)
		}
	}
}

func TestAStreamEndsWhenTheEventBusCloses(t *testing.T) {
	h := open(t, newAccess(), nil)
	_, r := h.listen(t, nil)
	h.bus.Close()
	if got, err := next(r); got != "" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAStreamWhoseReaderLosesAccessEndsAtTheNextCheck(t *testing.T) {
	for name, revoke := range map[string]func(*fakeAccess){
		"the login ended":             func(a *fakeAccess) { delete(a.bearers, "alice") },
		"the membership was removed":  func(a *fakeAccess) { a.members["alice"] = nil },
		"access cannot be determined": func(a *fakeAccess) { a.down = true },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, newAccess(), func(o *Options) { o.Timeouts.Recheck = time.Millisecond })
			h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_alice", Role: core.RoleAdmin})
			_, r := h.listen(t, map[string]string{"Authorization": "Bearer alice"})
			h.bus.Publish(core.Event{Name: core.EventHeartbeat, Data: core.Heartbeat{}})
			if got, err := next(r); !strings.HasPrefix(got, "event: heartbeat") || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
			h.access.mu.Lock()
			revoke(h.access)
			asked := h.access.asked
			h.access.mu.Unlock()
			if name == "access cannot be determined" {
				h.await(t, "the credentials are not checked again", func() bool {
					h.access.mu.Lock()
					defer h.access.mu.Unlock()
					return h.access.asked > asked+1
				})
				h.bus.Publish(core.Event{Name: core.EventBundleRecovered, Workspace: "ws_alice", Data: core.BundleRecovered{Name: "notes"}})
			}
			got, err := next(r)
			if ended := err != nil && got == ""; ended == (name == "access cannot be determined") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A proof of possession can be used only once (RFC 9449 section 11.1), so a token that came with one cannot be verified
// again.
func TestAStreamWithAProofOfPossessionEndsWhenItsTokenIsRevoked(t *testing.T) {
	access := newAccess()
	access.binds = true
	h := open(t, access, nil)
	access.user("alice", core.RoleMember, core.Workspace{ID: "ws_alice", Role: core.RoleAdmin})
	access.user("bob", core.RoleMember)
	_, r := h.listen(t, map[string]string{"Authorization": "DPoP alice", "DPoP": "proof"})
	for range 2 {
		access.revoke("bob")
		h.bus.Publish(core.Event{Name: core.EventHeartbeat, Data: core.Heartbeat{}})
		if got, err := next(r); !strings.HasPrefix(got, "event: heartbeat") || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	access.revoke("alice")
	if got, err := next(r); got != "" || err == nil {
		t.Errorf("the stream continued: %q, %v", got, err)
	}
}

func TestTheEventsRouteRefusesInvalidCredentialsAndWorkspaces(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []struct {
		header map[string]string
		status int
	}{
		{map[string]string{"Authorization": anonymous}, 401},
		{map[string]string{"X-Workspace-Id": "ws_none"}, 403},
		{map[string]string{"X-Workspace-Id": "none"}, 400},
	} {
		if r := h.do(t, call{method: "GET", path: "/v1/events", header: c.header}); r.StatusCode != c.status {
			t.Errorf("%v: %d %s", c.header, r.StatusCode, r.body)
		}
	}
}

var fanOut = flag.Int("readers", 100, "event readers in the fan-out test, a tenth of them stalled; use 1000 for a long run")

// Each event reaches every client that reads, and stalled clients are disconnected.
func TestStalledReadersAreDisconnectedAndTheOthersReceiveEverything(t *testing.T) {
	const bursts, burst = 4, 64
	stalled, readers := *fanOut/10, *fanOut-*fanOut/10
	h := open(t, newAccess(), nil)
	for range stalled {
		fmt.Fprintf(h.dialSmall(t), "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", h.access.key)
	}
	var got atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range readers {
		resp, r := h.listen(t, nil)
		stop := context.AfterFunc(ctx, func() { resp.Body.Close() })
		wg.Go(func() {
			defer stop()
			for i := range bursts * burst {
				e, err := next(r)
				if err != nil || !strings.Contains(e, fmt.Sprintf(`"tool":"%d"`, i)) {
					t.Errorf("event %d of a quick reader: %v", i, err)
					return
				}
				got.Add(1)
			}
			<-ctx.Done() // stay connected until the stalled clients have been disconnected
		})
	}
	h.await(t, "not all streams opened", func() bool { return h.streams.Count() == readers+stalled })
	pad := strings.Repeat("x", 4096)
	for i := range bursts * burst {
		h.bus.Publish(core.Event{Name: core.EventDataChanged, Workspace: core.DefaultWorkspaceID, Data: core.DataChanged{Server: pad, Tool: fmt.Sprint(i)}})
		if i%burst == burst-1 { // a quick reader can keep up with this
			h.await(t, "the quick readers did not get everything", func() bool { return got.Load() == int64(readers*(i+1)) })
		}
	}
	start := time.Now() // the stalled clients have now been stalled for some time
	h.await(t, "stalled readers are still connected", func() bool { return h.streams.Count() <= readers })
	if took := time.Since(start); took > 40*time.Second || h.streams.Count() != readers {
		t.Errorf("%d streams after %v, want %d", h.streams.Count(), took, readers)
	}
	cancel()
	wg.Wait()
}

// dialSmall connects a client with a small receive buffer that never reads.
func (h *testServer) dialSmall(t testing.TB) net.Conn {
	t.Helper()
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := small.DialContext(t.Context(), "tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAStreamHidesDataThatItsReaderMayNoLongerSee(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	var narrowed atomic.Bool
	h.tools.shows = func(c core.Caller) bool {
		if c.User.Groups != "" {
			narrowed.Store(true)
		}
		return true
	}
	h.listen(t, map[string]string{"Authorization": "Bearer alice"})
	h.await(t, "the stream does not watch for changed rights", func() bool { h.access.mu.Lock(); defer h.access.mu.Unlock(); return len(h.access.watchers) == 1 })
	h.access.mu.Lock()
	alice := h.access.bearers["alice"]
	alice.User.Groups = "contractors"
	h.access.bearers["alice"] = alice
	watchers := h.access.watchers
	h.access.mu.Unlock()
	for _, changed := range watchers {
		changed("alice")
	}
	h.await(t, "events are still filtered without the new groups", func() bool {
		h.bus.Publish(core.Event{Name: core.EventDataChanged, Workspace: "ws_second", Data: core.DataChanged{Server: "echo", Tool: "put"}})
		return narrowed.Load()
	})
}
