package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// router sends every request to one of several servers, like a proxy. It counts the requests that open a session. If a
// request cannot connect, it waits until the router uses another server.
type router struct {
	t *testing.T

	mu          sync.Mutex
	to          *url.URL
	changed     chan struct{} // closed when the field to changes
	initialized int
}

func newRouter(t *testing.T, s *harness.Server) *router {
	r := &router{t: t, changed: make(chan struct{})}
	r.use(s)
	return r
}

// use sends all further requests to s.
func (r *router) use(s *harness.Server) {
	to, err := url.Parse(s.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	close(r.changed)
	r.changed = make(chan struct{})
}

// RoundTrip implements http.RoundTripper.
func (r *router) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	for {
		r.mu.Lock()
		to, changed := r.to, r.changed
		if bytes.Contains(body, []byte(`"method":"initialize"`)) {
			r.initialized++
		}
		r.mu.Unlock()
		sent := req.Clone(req.Context())
		sent.URL.Scheme, sent.URL.Host, sent.Host = to.Scheme, to.Host, to.Host
		sent.Header.Set("X-Workspace-Id", harness.Workspace)
		sent.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := http.DefaultTransport.RoundTrip(sent)
		if failed, ok := errors.AsType[*net.OpError](err); !ok || failed.Op != "dial" {
			return resp, err
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

func (r *router) sessionsOpened() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.initialized
}

// guest is the official Go client. Its requests go through a router.
type guest struct {
	t       *testing.T
	router  *router
	session *mcp.ClientSession
	changed chan struct{} // receives a value when the list of tools changes
}

func newGuest(t *testing.T, s *harness.Server) *guest {
	t.Helper()
	g := &guest{t: t, router: newRouter(t, s), changed: make(chan struct{}, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) {
			select {
			case g.changed <- struct{}{}:
			default:
			}
		},
	})
	var err error
	g.session, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://ropewalk.test/mcp", HTTPClient: &http.Client{Transport: g.router},
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.session.Close() })
	return g
}

// echo calls a tool and returns the time that has passed since a given moment.
func (g *guest) echo(text string, since time.Time) time.Duration {
	g.t.Helper()
	result, err := g.session.CallTool(g.t.Context(), &mcp.CallToolParams{Name: "sample__echo", Arguments: map[string]any{"text": text}})
	if err != nil || result.IsError || len(result.Content) != 1 {
		g.t.Fatalf("%s: %+v %v", text, result, err)
	}
	if output, ok := result.Content[0].(*mcp.TextContent); !ok || output.Text != text {
		g.t.Fatalf("%s: got %+v", text, result.Content[0])
	}
	return time.Since(since)
}

// awaitChange waits until the client is notified that the list of tools has changed.
func (g *guest) awaitChange() {
	g.t.Helper()
	select {
	case <-g.changed:
	case <-time.After(harness.Timeout):
		g.t.Error("the client was not notified that the list of tools changed")
	}
}

func TestAKilledServersSessionContinuesElsewhereAndAfterARestart(t *testing.T) {
	for _, adapter := range []string{"redis", "postgres"} {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			database := harness.Databases.New(t)
			store := "adapter: postgres, url: '" + database + "'"
			if adapter == "redis" {
				store = "adapter: redis, url: 'redis://" + testenv.StartRedis(t).Addr + "/0'"
			}
			var servers []*harness.Server
			for _, name := range []string{"a", "b"} {
				servers = append(servers, harness.Serve(t, harness.Flags("--sample"), func(s *harness.Server) { s.Database = database },
					harness.Config("storage: {url: '"+database+"'}\nsessionStore: {"+store+"}\nmcp: {replica: "+name+"}\n")))
			}
			for _, s := range servers {
				s.WaitForStatus(t, "sample", "running")
			}
			a, b := servers[0], servers[1]
			g := newGuest(t, a)
			id := g.session.ID()
			g.echo("before", time.Now())

			a.Kill()
			killed := time.Now()
			g.router.use(b)
			elsewhere := g.echo("elsewhere", killed)
			g.awaitChange()

			a.Start() // a new process with the same home
			a.WaitForStatus(t, "sample", "running")
			b.Kill()
			killed = time.Now()
			g.router.use(a)
			back := g.echo("back", killed)

			a.Kill()
			a.Start()
			started := time.Now()
			g.router.use(a)
			restarted := g.echo("restarted", started)

			t.Logf("continued on the other server after %v, on the first server after %v, and after a restart within %v", elsewhere, back, restarted)
			if n := g.router.sessionsOpened(); n != 1 || g.session.ID() != id {
				t.Errorf("%d sessions were opened; the ID was %s and is now %s", n, id, g.session.ID())
			}
			if best := min(elsewhere, back); best > propagationLimit || restarted > 5*propagationLimit {
				t.Errorf("the session continued after %v, or %v after a restart; the limit is %v", best, restarted, propagationLimit)
			}
		})
	}
}
