package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // ends on its own, seconds later
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))    // one for the whole process
}

// serve runs an app whose GET /stream opens a stream of the given kind with run.
func serve(t *testing.T, kind Kind, run func(context.Context, *Writer)) (*Streams, string) {
	t.Helper()
	s := New(hclog.NewNullLogger())
	app := fiber.New(fiber.Config{DisableStartupMessage: true, Immutable: true, ErrorHandler: func(c *fiber.Ctx, err error) error {
		return c.Status(fiber.StatusServiceUnavailable).SendString(string(core.CodeOf(err)))
	}})
	open := func(c *fiber.Ctx) error {
		c.Set("X-Request-Id", "the-id")
		return s.Open(c, kind, run)
	}
	app.Get("/stream", open)
	app.Get("/plain", func(c *fiber.Ctx) error { return c.SendString("plain") })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.Drain()
		if err := app.ShutdownWithContext(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("streams are still open: %v", err)
		}
		_ = ln.Close() // a test that ends before the server has begun shuts nothing down
		<-served
	})
	return s, ln.Addr().String()
}

func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

func ask(t *testing.T, conn net.Conn, r *bufio.Reader, request string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

const getStream = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("a minute went by: %s", what)
	}
}

func TestEachEventIsSentAsOnePieceAfterTheHeadersInTheDocs(t *testing.T) {
	_, addr := serve(t, Standing, func(_ context.Context, w *Writer) {
		_ = w.Event("bundle.dead", []byte(`{"name":"a"}`))
		_ = w.Comment()
		_ = w.Event("", []byte("two\nlines\r\nthree\rfour"))
		if w.Event("a\nb", nil) == nil {
			_ = w.Event("line break accepted", nil)
		}
	})
	conn, r := dial(t, addr)
	resp := ask(t, conn, r, "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n") // the connection was in use before
	if body, _ := io.ReadAll(resp.Body); string(body) != "plain" {
		t.Fatalf("body %q", body)
	}
	if _, err := io.WriteString(conn, getStream); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r) // the stream ends with its connection
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(raw), "\r\n\r\n")
	for _, want := range []string{"HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Cache-Control: no-cache", "Connection: keep-alive", "X-Request-Id: the-id"} {
		if !strings.Contains(head+"\r\n", want+"\r\n") {
			t.Errorf("the head lacks %q:\n%s", want, head)
		}
	}
	want := ""
	for _, piece := range []string{"event: bundle.dead\ndata: {\"name\":\"a\"}\n\n", ":\n\n", "data: two\ndata: lines\ndata: three\ndata: four\n\n"} {
		want += fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
	}
	if want += "0\r\n\r\n"; body != want {
		t.Errorf("the body is\n%q\nwant\n%q", body, want)
	}
}

func TestAnHTTP10ClientGetsTheEventsUntilTheStreamCloses(t *testing.T) {
	_, addr := serve(t, Standing, func(_ context.Context, w *Writer) { _ = w.Event("e", []byte("1")) })
	conn, r := dial(t, addr)
	resp := ask(t, conn, r, "GET /stream HTTP/1.0\r\nHost: a\r\n\r\n")
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "event: e\ndata: 1\n\n" || len(resp.TransferEncoding) != 0 {
		t.Fatalf("%q, %v, %v", body, resp.TransferEncoding, err)
	}
}

func TestAHEADRequestGetsTheHeadersAndTheConnectionStaysOpen(t *testing.T) {
	_, addr := serve(t, Standing, func(context.Context, *Writer) { t.Error("HEAD opened a stream") })
	conn, r := dial(t, addr)
	if _, err := io.WriteString(conn, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodHead})
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v, %v", resp, err)
	}
	if body, _ := io.ReadAll(ask(t, conn, r, "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n").Body); string(body) != "plain" {
		t.Fatalf("body %q", body)
	}
}

func TestADisconnectedReaderIsNoticedEvenIfNothingIsWritten(t *testing.T) {
	ended := make(chan struct{})
	_, addr := serve(t, Standing, func(ctx context.Context, w *Writer) {
		_ = w.Flush()
		<-ctx.Done()
		if err := w.Event("late", nil); err == nil { // the write may still succeed, because the kernel accepts it; the server must not fail
			_ = w.Comment()
		}
		close(ended)
	})
	conn, r := dial(t, addr)
	ask(t, conn, r, getStream)
	conn.Close()
	within(t, "the disconnect was not noticed", ended)
}

func TestInputOnAnEventStreamIsNeverServedAsARequest(t *testing.T) {
	_, addr := serve(t, Standing, func(ctx context.Context, w *Writer) {
		_ = w.Flush()
		<-ctx.Done()
	})
	conn, r := dial(t, addr)
	ask(t, conn, r, getStream+"GET /plain HTTP/1.1\r\nHost: a\r\n\r\n")
	flood := strings.Repeat("x", 1024)
	for range 1024 { // far more input than the server accepts, so the stream ends
		if _, err := io.WriteString(conn, flood); err != nil {
			break
		}
	}
	rest, _ := io.ReadAll(r)
	if strings.Contains(string(rest), "plain") {
		t.Fatalf("a pipelined request got a response: %q", rest)
	}
}

func TestAPanicEndsItsStreamOnly(t *testing.T) {
	_, addr := serve(t, Standing, func(_ context.Context, w *Writer) {
		_ = w.Flush()
		panic("boom")
	})
	conn, r := dial(t, addr)
	resp := ask(t, conn, r, getStream)
	if body, err := io.ReadAll(resp.Body); len(body) != 0 || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	conn, r = dial(t, addr)
	if resp := ask(t, conn, r, "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n"); resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
}

func TestShutdownEndsStandingStreams(t *testing.T) {
	s, addr := serve(t, Standing, func(ctx context.Context, w *Writer) {
		_ = w.Flush()
		<-ctx.Done()
	})
	conn, r := dial(t, addr)
	resp := ask(t, conn, r, getStream)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 { // the body is complete
		t.Fatalf("%q, %v", rest, err)
	}
	conn, r = dial(t, addr)
	resp = ask(t, conn, r, getStream)
	if body, _ := io.ReadAll(resp.Body); string(body) != string(core.CodeUnavailable) {
		t.Fatalf("after shutdown a stream was opened: %d %q", resp.StatusCode, body)
	}
}

func TestShutdownLetsResponsesFinishUntilItsContextEnds(t *testing.T) {
	goOn := make(chan struct{})
	s, addr := serve(t, Response, func(ctx context.Context, w *Writer) {
		_ = w.Flush()
		select {
		case <-goOn:
			_ = w.Event("done", nil)
		case <-ctx.Done():
			_ = w.Event("cut", nil)
		}
	})
	conn, r := dial(t, addr)
	resp := ask(t, conn, r, getStream)
	s.Drain()
	close(goOn)
	if body, err := io.ReadAll(resp.Body); string(body) != "event: done\ndata: \n\n" {
		t.Fatalf("%q, %v", body, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestShutdownCutsOffResponsesWhenItsContextEnds(t *testing.T) {
	s, addr := serve(t, Response, func(ctx context.Context, w *Writer) {
		_ = w.Flush()
		<-ctx.Done()
		_ = w.Event("cut", nil)
	})
	conn, r := dial(t, addr)
	resp := ask(t, conn, r, getStream)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != "event: cut\ndata: \n\n" {
		t.Fatalf("%q, %v", body, err)
	}
}

func TestARequestAfterAResponseNeverUsesAClosingConnection(t *testing.T) {
	_, addr := serve(t, Response, func(_ context.Context, w *Writer) { _ = w.Event("done", nil) })
	client := &http.Client{Transport: &http.Transport{}} // keeps connections that claim to stay open
	t.Cleanup(client.CloseIdleConnections)
	for i := range 200 {
		resp, err := client.Get("http://" + addr + "/stream")
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "event: done\ndata: \n\n" || !resp.Close {
			t.Fatalf("stream %d: %q, %v, close %v", i, body, err, resp.Close)
		}
		// The client does not repeat a POST, so it fails if the connection was reused.
		if resp, err = client.Post("http://"+addr+"/plain", "text/plain", strings.NewReader("x")); err != nil {
			t.Fatalf("the request after stream %d: %v", i, err)
		}
		resp.Body.Close()
	}
}

func TestAStandingStreamSendsCloseIfItsHandlerDoes(t *testing.T) {
	s := New(hclog.NewNullLogger())
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderConnection, "close")
		return s.Open(c, Standing, func(context.Context, *Writer) {})
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://a/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := app.Test(req, -1)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !resp.Close {
		t.Errorf("the response keeps its connection: %v", resp.Header)
	}
}
