package httpapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// Clients that never read can use only a limited part of the memory, and each user at most a quarter of that.
func TestUnreadLargeResponsesAreBounded(t *testing.T) {
	const size = 24 << 20 // more than the kernel buffers
	h := open(t, newAccess(), func(o *Options) {
		o.Limits = limits.New(limits.Settings{UnreadBytes: 8 * size})
		o.Mounts = []func(Router){func(r Router) {
			r.Get("/mcp/large", func(c *fiber.Ctx) error { return c.SendString(strings.Repeat("x", size)) })
		}}
	})
	ask := func(who string) *http.Response {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+"/mcp/large", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", who)
		resp, err := (&http.Client{Transport: &http.Transport{ReadBufferSize: 4 << 10}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	first, second := ask("203.0.113.1"), ask("203.0.113.1")
	if first.StatusCode != 200 || second.StatusCode != 200 {
		t.Fatalf("%d, %d", first.StatusCode, second.StatusCode)
	}
	third := ask("203.0.113.1")
	if third.StatusCode != http.StatusTooManyRequests || third.Header.Get("Retry-After") == "" {
		t.Errorf("more than a quarter: %d", third.StatusCode)
	}
	if other := ask("203.0.113.2"); other.StatusCode != 200 {
		t.Errorf("another client: %d", other.StatusCode)
	}
	if n, err := io.Copy(io.Discard, first.Body); n != size || err != nil {
		t.Errorf("%d bytes were read, %v", n, err)
	}
	testkit.Eventually(t, "a response that was read is no longer counted", func() bool { return ask("203.0.113.1").StatusCode == 200 })
}
