package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi/adminapi"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/internal/testkit/fakepeople"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // ends on its own, seconds later
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp/stackless.funcWorker"),      // compression, one for the whole process
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))    // one for the whole process
}

// testServer is a running server with in-memory fakes behind it.
type testServer struct {
	*Server
	access        *fakeAccess
	apps          *fakeApps
	tools         *fakeTools
	bus           *event.Bus
	conversations *fakeConversations
	people        *fakepeople.Store
	addr          string
	log           *bytes.Buffer
	served        chan error
}

func loopbackOnly() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// open starts a server. change, if not nil, may alter its options. The server has an API key unless a is in dev mode.
func open(t testing.TB, a *fakeAccess, change func(*Options)) *testServer {
	t.Helper()
	h := &testServer{access: a, apps: newApps(), tools: &fakeTools{}, conversations: newFakeConversations(), bus: event.New(hclog.NewNullLogger()), log: &bytes.Buffer{}, served: make(chan error, 1)}
	h.tools.apps = h.apps
	h.people = fakepeople.New(core.User{ID: "usr_a", Email: "a@example.com", DisplayName: "A", OrgRole: core.RoleMember})
	o := Options{
		Access: a, Apps: h.apps, Tools: h.tools, Accounts: fakeAccounts{}, Views: fakeViews{}, People: people.New(h.people, h.people, hclog.NewNullLogger()), Features: allFeatures{}, Events: h.bus, Metrics: fakeMetrics{}, Registries: fakeRegistries{}, AuditTrail: &trail{}, Settings: func() []config.Value { return nil }, Plugins: func() []adminapi.Plugin { return nil }, Pins: &fakePins{}, Approvals: fakeApprovals{}, Version: "test", TrustedProxies: loopbackOnly(),
		Logger: hclog.New(&hclog.LoggerOptions{Output: h.log, Level: hclog.Warn, Mutex: &sync.Mutex{}}),
	}
	if change != nil {
		change(&o)
	}
	if o.Chat == nil {
		o.Chat = newChat(t, h.conversations, h.tools, config.Models{})
	}
	h.Server = New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = ln.Addr().String()
	go func() { h.served <- h.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-h.served; err != nil {
			t.Errorf("serve: %v", err)
		}
		h.bus.Close()
	})
	return h
}

// call is one request in the form of a table row.
type call struct {
	method, path, body string
	header             map[string]string
	host               string
}

type reply struct {
	*http.Response
	body string
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("the body %q is not an object: %v", r.body, err)
	}
	return v
}

func (r reply) code() string {
	var v struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal([]byte(r.body), &v)
	return v.Error
}

var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       time.Minute,
}

// do sends c. It uses the owner's key unless c sets an Authorization header.
func (h *testServer) do(t testing.TB, c call) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+h.addr+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if !h.access.dev {
		req.Header.Set("Authorization", "Bearer "+h.access.key)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	req.Host = c.host
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp, string(body)}
}

func dial(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return conn, bufio.NewReader(conn)
}

// exchange sends one request on an open connection and reads the response.
func exchange(t testing.TB, conn net.Conn, r *bufio.Reader, request string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Error(err)
		return 0, ""
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(read)
}
