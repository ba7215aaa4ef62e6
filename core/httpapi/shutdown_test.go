package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const startEcho = "POST /v1/apps/echo/start HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer the-right-key-0123\r\n\r\n"

// TestShutdownFinishesPendingRequestsAndRefusesNewOnes shuts down a server with calls in flight and open event streams.
func TestShutdownFinishesPendingRequestsAndRefusesNewOnes(t *testing.T) {
	const calls, readers = 20, 50
	h := open(t, newAccess(), nil)
	h.apps.wait = make(chan struct{})
	var busy []*bufio.Reader
	for range calls {
		conn, r := dial(t, h.addr)
		if _, err := io.WriteString(conn, startEcho); err != nil {
			t.Fatal(err)
		}
		busy = append(busy, r)
		<-h.apps.began
	}
	late, lateReader := dial(t, h.addr)
	half := len(getHead) / 2
	if _, err := io.WriteString(late, getHead[:half]); err != nil {
		t.Fatal(err)
	}
	h.await(t, "the late connection was not accepted", func() bool { return h.router.Server().GetOpenConnectionsCount() > calls })
	var events []*bufio.Reader
	for range readers {
		_, r := h.listen(t, nil)
		events = append(events, r)
	}

	done := make(chan error, 1)
	go func() { done <- h.Shutdown(t.Context()) }()
	for _, r := range events {
		if got, err := next(r); got != "" || !errors.Is(err, io.EOF) {
			t.Errorf("an event stream did not end cleanly: %q, %v", got, err)
		}
	}
	if _, err := net.Dial("tcp", h.addr); err == nil {
		t.Error("a new connection was accepted")
	}
	if _, err := io.WriteString(late, getHead[half:]+"\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(lateReader, nil)
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !resp.Close {
		t.Errorf("a new request on an old connection: %v %v", resp, err)
	}
	select {
	case err := <-done:
		t.Fatalf("shutdown did not wait for the requests in flight: %v", err)
	default:
	}
	close(h.apps.wait)
	for _, r := range busy {
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 || !resp.Close {
			t.Errorf("a request in flight: %v %v", resp, err)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestShutdownCancelsRemainingRequestsAfterItsGracePeriod(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.wait = make(chan struct{})
	conn, r := dial(t, h.addr)
	if _, err := io.WriteString(conn, startEcho); err != nil {
		t.Fatal(err)
	}
	<-h.apps.began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 500 {
		t.Fatalf("%v %v", resp, err)
	}
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), string(core.CodeStartFailed)) {
		t.Errorf("%s", body)
	}
}

func TestServeAfterShutdownReturnsImmediately(t *testing.T) {
	h := open(t, newAccess(), nil)
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Serve(ln); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener was not closed")
	}
}
