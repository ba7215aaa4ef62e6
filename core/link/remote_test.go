package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// sdkServer returns an SDK server with tools for the tests.
func sdkServer() *mcp.Server { return sdkServerWith(func() {}, func() {}) }

// sdkServerWith returns an SDK server. It calls waiting when a call to the tool "wait" begins, and cancelled when that
// call is cancelled. The SDK's server does not end a session during a call, so the call eventually ends on its own.
func sdkServerWith(waiting, cancelled func()) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "3.0"}, nil)
	type in struct {
		Text string `json:"text,omitempty"`
		N    int    `json:"n,omitempty"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(ctx context.Context, r *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		for i := range in.N {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		waiting()
		select {
		case <-ctx.Done():
			cancelled()
		case <-time.After(time.Minute):
		}
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(server, &mcp.Tool{Name: "change"}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		server.RemoveTools("wait")
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
	})
	return server
}

// handlers serve the same server over each transport.
func handlers(server *mcp.Server) map[string]http.Handler {
	get := func(*http.Request) *mcp.Server { return server }
	return map[string]http.Handler{
		"streamable-http":      mcp.NewStreamableHTTPHandler(get, nil),
		"streamable-http JSON": mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless":            mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}),
		"sse":                  mcp.NewSSEHandler(get, nil),
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func openRemote(t *testing.T, r core.Remote, ro remote.Options, o Options) (*Link, error) {
	t.Helper()
	ro.AllowPrivate = true
	transport, err := remote.New(r, ro)
	if err != nil {
		return nil, err
	}
	l, err := Open(t.Context(), transport, o)
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

func mustOpen(t *testing.T, r core.Remote, ro remote.Options, o Options) *Link {
	t.Helper()
	l, err := openRemote(t, r, ro, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

func TestRemoteServersAreCalled(t *testing.T) {
	for _, kind := range []string{"streamable-http", "streamable-http JSON", "sse"} {
		t.Run(kind, func(t *testing.T) {
			changed, cancelled := make(chan string, 8), make(chan string, 1)
			ctx, cancel := context.WithCancel(t.Context())
			url := serve(t, handlers(sdkServerWith(cancel, func() { cancelled <- "wait" }))[kind])
			l := mustOpen(t, core.Remote{URL: url, Type: strings.TrimSuffix(kind, " JSON")}, remote.Options{}, Options{OnListChanged: func(kind string) { changed <- kind }})
			if l.Info().Name != "remote" || l.Info().ProtocolVersion != ProtocolVersion {
				t.Errorf("info is %+v", l.Info())
			}
			if tools, err := l.List(t.Context(), core.KindTools); err != nil || len(tools) != 4 {
				t.Errorf("%d tools (%v)", len(tools), err)
			}
			got, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{"text":"hé\n"}}`)})
			if want := `{"content":[{"type":"text","text":"hé\n"}]}`; err != nil || string(got) != want {
				t.Errorf("echo: %s (%v), want %s", got, err, want)
			}
			_, err = l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"nope"}`)})
			if failure, ok := errors.AsType[*rpc.Error](err); !ok || failure.Code != -32602 {
				t.Errorf("an unknown tool: %v", err)
			}
			if kind != "streamable-http JSON" { // a JSON response has no place for notifications
				remoteProgress(t, l)
			}
			if _, err := l.Call(ctx, Request{Method: "tools/call", Params: json.RawMessage(`{"name":"wait"}`)}); !errors.Is(err, context.Canceled) {
				t.Errorf("wait: %v", err)
			}
			wait(t, cancelled) // before the session is closed
			if _, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"change"}`)}); err != nil {
				t.Errorf("change: %v", err)
			}
			if got := wait(t, changed); got != "tools" {
				t.Errorf("changed: %s", got)
			}
		})
	}
}

func remoteProgress(t *testing.T, l *Link) {
	t.Helper()
	var seen []string
	_, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"count","arguments":{"n":20},"_meta":{"progressToken":"me"}}`), Notify: func(n rpc.Notification) {
		seen = append(seen, string(n.Params))
	}})
	if err != nil || len(seen) != 20 || !slices.IsSortedFunc(seen, func(a, b string) int { return len(a) - len(b) }) || !strings.Contains(seen[19], `"progressToken":"me"`) {
		t.Errorf("progress: %v (%v)", seen, err)
	}
}

func TestCredentialsAreSentOnlyToTheConfiguredOrigin(t *testing.T) {
	var reached atomic.Int64
	other := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	inner := handlers(sdkServer())["streamable-http"]
	var missing atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("X-Extra") != "more" {
			missing.Add(1)
		}
		if strings.HasPrefix(r.URL.Path, "/down") {
			http.Redirect(w, r, other+"/", http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/endpoint-elsewhere" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	app := core.Remote{Type: "streamable-http", Auth: core.RemoteAuth{Type: "bearer", Token: "s3cret"}, Headers: map[string]core.Secret{"x-extra": "more"}}

	app.URL = url + "/moved"
	l := mustOpen(t, app, remote.Options{}, Options{})
	if _, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo"}`)}); err != nil {
		t.Errorf("after a redirect to the same server: %v", err)
	}
	app.URL = url + "/down?key=hidden"
	_, err := openRemote(t, app, remote.Options{}, Options{})
	if failed, ok := errors.AsType[*remote.Error](err); !ok || !strings.Contains(err.Error(), "redirects to") || strings.Contains(failed.Error(), "hidden") {
		t.Errorf("a redirect to another host: %v", err)
	}
	app.URL, app.Type = url+"/endpoint-elsewhere", "sse"
	if _, err := openRemote(t, app, remote.Options{}, Options{}); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("an endpoint on another host: %v", err)
	}
	if reached.Load() != 0 || missing.Load() != 0 {
		t.Errorf("%d requests reached the other host, %d had no secrets", reached.Load(), missing.Load())
	}
}

func TestLoopbackPrivateAndLinkLocalAddressesAreNotDialled(t *testing.T) {
	var hits atomic.Int64
	canary := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	port := canary[strings.LastIndex(canary, ":"):]
	for _, url := range []string{
		canary, "http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://0.0.0.0" + port, "http://127.1.2.3" + port,
		"http://10.0.0.1", "http://169.254.169.254/latest/meta-data", "http://[fd00::1]", "http://192.168.0.1", "http://[64:ff9b::7f00:1]",
	} {
		transport, err := remote.New(core.Remote{URL: url, Type: "streamable-http"}, remote.Options{ConnectTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), transport, Options{})
		if failed, ok := errors.AsType[*remote.Error](err); !ok || !failed.Down {
			t.Errorf("%s: %v", url, err)
		}
	}
	transport, err := remote.New(core.Remote{URL: "http://169.254.169.254/", Type: "sse"}, remote.Options{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), transport, Options{}); err == nil || !strings.Contains(err.Error(), "apps may not connect") {
		t.Errorf("link-local with private addresses allowed: %v", err)
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
}

// script responds to initialize like a server and passes everything else to next.
func script(next func(w http.ResponseWriter, r *http.Request, m message)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &m)
		switch {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "the-session")
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
		case m.Method != "" && m.ID != nil:
			next(w, r, m)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

// The link keeps all of a list's cursors to detect a repeated one. Without a limit, 200 large cursors would use
// gigabytes.
func TestAListsCursorsCountTowardsItsSize(t *testing.T) {
	pages := 0
	url := serve(t, script(func(w http.ResponseWriter, _ *http.Request, m message) {
		pages++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"nextCursor":"%d%s"}}`, m.ID, pages, strings.Repeat("c", 3<<20))
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	if _, err := l.List(t.Context(), core.KindTools); err == nil || !strings.Contains(err.Error(), "with its cursors") || pages > 6 {
		t.Errorf("after %d pages: %v", pages, err)
	}
}

// The server repeatedly ends a call's stream, each time with a new event id and a request to poll it immediately. The
// link polls it at most five times a second.
func TestAServerCannotMakeACallPollContinuously(t *testing.T) {
	var asked atomic.Int64
	plain := script(func(w http.ResponseWriter, _ *http.Request, _ message) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "id: 0\nretry: 1\ndata:\n\n")
	})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Last-Event-Id") == "" {
			plain.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "id: %d\nretry: 1\ndata:\n\n", asked.Add(1))
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := l.Call(ctx, Request{Method: "tools/call"}); err == nil {
		t.Error("the call was answered")
	}
	if n := asked.Load(); n == 0 || n > 15 {
		t.Errorf("the stream was requested %d times in three seconds", n)
	}
}

// Cutting off the rest of a stream closes its connection, and the next call would need a new connection.
func TestACallsStreamIsReadToTheEndAfterTheCallerHasLeft(t *testing.T) {
	ends := make(chan error, 1)
	url := serve(t, script(func(w http.ResponseWriter, r *http.Request, m message) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
		_ = http.NewResponseController(w).Flush()
		rest := time.NewTimer(50 * time.Millisecond)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-r.Context().Done():
		}
		ends <- r.Context().Err()
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := l.Call(ctx, Request{Method: "tools/call"})
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ends; err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
}

// Servers that do not support cancellation notice it when the stream ends.
func TestACancelledCallsStreamEndsImmediately(t *testing.T) {
	began, ended := make(chan struct{}), make(chan time.Time, 1)
	url := serve(t, script(func(_ http.ResponseWriter, r *http.Request, _ message) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- time.Now()
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	best := time.Hour // the fastest of several calls, because a busy machine may delay any of them
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			cancel()
		}()
		if _, err := l.Call(ctx, Request{Method: "tools/call"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		returned := time.Now()
		best = min(best, (<-ended).Sub(returned))
	}
	if best > drainTime/2 {
		t.Errorf("the streams continued for at least %v", best)
	}
}

func TestAResponseThatIsTooLargeOrInvalidFailsOnlyItsCall(t *testing.T) {
	const limit = 1 << 20
	fill := strings.Repeat("x", limit)
	for name, c := range map[string]struct {
		kind, body string
		want       error
	}{
		"JSON, too large":        {"application/json", `{"jsonrpc":"2.0","id":%s,"result":"` + fill + `"}`, ErrTooLarge},
		"JSON, not a message":    {"application/json", `{"hello":%s}`, ErrMalformed},
		"JSON, two results":      {"application/json", `{"jsonrpc":"2.0","id":%s,"result":1,"result":2}`, ErrMalformed},
		"an event, too large":    {"text/event-stream", `data: {"jsonrpc":"2.0","id":%s,"result":"` + fill + "\"}\n\n", ErrTooLarge},
		"an event, invalid JSON": {"text/event-stream", "data: oops %s\n\n", ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var bad atomic.Bool
			bad.Store(true)
			url := serve(t, script(func(w http.ResponseWriter, _ *http.Request, m message) {
				if bad.Swap(false) {
					w.Header().Set("Content-Type", c.kind)
					_, _ = fmt.Fprintf(w, c.body, m.ID)
					return
				}
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"fine"}`, m.ID)
			}))
			l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{MaxAnswer: limit}, Options{})
			if got, err := l.Call(t.Context(), Request{Method: "tools/call"}); !errors.Is(err, c.want) {
				t.Errorf("got %.50s (%v), want %v", got, err, c.want)
			}
			if got, err := l.Call(t.Context(), Request{Method: "tools/call"}); string(got) != `"fine"` {
				t.Errorf("the next call: %s (%v)", got, err)
			}
		})
	}
}

func TestAnEndlessResponseUsesLittleMemory(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for _, kind := range []string{"application/json", "text/event-stream", "text/plain"} {
		for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
			t.Run(fmt.Sprint(kind, " ", status), func(t *testing.T) {
				url := serve(t, script(func(w http.ResponseWriter, r *http.Request, _ message) {
					w.Header().Set("Content-Type", kind)
					w.WriteHeader(status)
					piece := []byte("data: " + strings.Repeat("x", 1<<20))
					for range 256 {
						if _, err := w.Write(piece); err != nil || r.Context().Err() != nil {
							return
						}
					}
				}))
				l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := l.Call(ctx, Request{Method: "tools/call"}); err == nil || ctx.Err() != nil {
					t.Errorf("the call ended with %v", err)
				}
				runtime.ReadMemStats(&after)
				if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
					t.Errorf("the heap grew by %d MiB", grown>>20)
				}
			})
		}
	}
	goleak.VerifyNone(t, before) // no connection with an abandoned response stays open
}

func TestTheLinkEndsWhenTheServerNoLongerKnowsTheSession(t *testing.T) {
	url := serve(t, script(func(w http.ResponseWriter, _ *http.Request, _ message) { http.Error(w, "gone", http.StatusNotFound) }))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	_, err := l.Call(t.Context(), Request{Method: "tools/call"})
	if !errors.Is(err, ErrClosed) || strings.Contains(err.Error(), "the-session") {
		t.Errorf("the call got %v", err)
	}
	wait(t, l.Done())
}

func TestTheLinkEndsWhenTheServerCannotBeDialled(t *testing.T) {
	server := httptest.NewServer(script(nil))
	l := mustOpen(t, core.Remote{URL: server.URL, Type: "streamable-http"}, remote.Options{}, Options{})
	server.CloseClientConnections()
	server.Close()
	// The first call may still use the old connection. Its failure does not mean that the server is down.
	_, err := l.Call(t.Context(), Request{Method: "tools/call"})
	if err != nil && !errors.Is(err, ErrClosed) {
		_, err = l.Call(t.Context(), Request{Method: "tools/call"})
	}
	if !errors.Is(err, ErrClosed) {
		t.Errorf("the call got %v", err)
	}
	wait(t, l.Done())
}

func TestAnHTTPErrorFromTheServerFailsOnlyTheCall(t *testing.T) {
	for _, status := range []int{401, 403, 429, 500, 502, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var bad atomic.Bool
			bad.Store(true)
			url := serve(t, script(func(w http.ResponseWriter, r *http.Request, m message) {
				if bad.Swap(false) {
					w.WriteHeader(status)
					return
				}
				if v := r.Header.Get("Mcp-Protocol-Version"); v != "2025-06-18" {
					t.Errorf("the negotiated revision is sent as %q", v)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":1}`, m.ID)
			}))
			l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
			if _, err := l.Call(t.Context(), Request{Method: "tools/call"}); err == nil || errors.Is(err, ErrClosed) {
				t.Errorf("the call got %v", err)
			}
			if _, err := l.Call(t.Context(), Request{Method: "tools/call"}); err != nil {
				t.Errorf("the next call got %v", err)
			}
		})
	}
}

func TestACallIsCancelledIfItsResponseDoesNotStart(t *testing.T) {
	url := serve(t, script(func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() }))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{HeaderTimeout: 50 * time.Millisecond}, Options{})
	if _, err := l.Call(t.Context(), Request{Method: "tools/call"}); err == nil || !strings.Contains(err.Error(), "did not start to respond") {
		t.Errorf("the call got %v", err)
	}
}
