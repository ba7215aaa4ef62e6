package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

func TestABodyMayHoldOneMebibyteUnderV1(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.MaxBody = 2 << 20
		o.Mounts = append(o.Mounts, func(r Router) {
			r.Post("/mounted", func(c *fiber.Ctx) error { return c.SendString(fmt.Sprint(len(c.Body()))) })
		})
	})
	fit := `{"tool":"a__b","pad":"` + strings.Repeat("x", maxBody-24) + `"}`
	for _, c := range []struct {
		name, path, body string
		status           int
	}{
		{"exactly", "/v1/tools/call", fit, 200},
		{"a byte more", "/v1/tools/call", fit + " ", 413},
		{"a byte more where there is no route", "/v1/nothing", fit + " ", 413},
		{"far more", "/v1/tools/call", strings.Repeat("x", 8<<20), 413},
		{"exactly, mounted", "/mounted", strings.Repeat("x", 2<<20), 200},
		{"a byte more, mounted", "/mounted", strings.Repeat("x", 2<<20+1), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := h.do(t, call{method: "POST", path: c.path, body: c.body})
			if r.StatusCode != c.status || (c.status == 413 && r.code() != "payload_too_large") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
}

// Hardening 2 with fewer of them: bodies without a length are refused once they are too large.
func TestEndlessChunkedBodiesAreRefused(t *testing.T) {
	h := open(t, newAccess(), nil)
	chunk := "10000\r\n" + strings.Repeat("x", 0x10000) + "\r\n"
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			conn, r := dial(t, h.addr)
			fmt.Fprint(conn, postHead+"Transfer-Encoding: chunked\r\n\r\n")
			for range 1600 { // 100 MiB
				if _, err := io.WriteString(conn, chunk); err != nil {
					break
				}
			}
			if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 413 {
				t.Errorf("%v %v", resp, err)
			}
		})
	}
	wg.Wait()
}

func TestHeadersMayHold16KiB(t *testing.T) {
	h := open(t, newAccess(), nil)
	if r := h.do(t, call{method: "GET", path: "/v1/health", header: map[string]string{"X-Long": strings.Repeat("x", 12<<10)}}); r.StatusCode != 200 {
		t.Errorf("12 KiB: %d", r.StatusCode)
	}
	for name, c := range map[string]call{
		"a header":     {method: "GET", path: "/v1/health", header: map[string]string{"X-Long": strings.Repeat("x", 17<<10)}},
		"the path":     {method: "GET", path: "/v1/" + strings.Repeat("x", 17<<10)},
		"a huge token": {method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "Bearer " + strings.Repeat("x", 64<<10)}},
	} {
		if r := h.do(t, c); r.StatusCode != 431 || r.code() != "bad_request" {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
}

func TestThePatienceOfTheListener(t *testing.T) {
	h := open(t, newAccess(), nil)
	s := h.app.Server()
	if s.ReadTimeout != 10*time.Second || s.IdleTimeout != 255*time.Second || s.WriteTimeout != 60*time.Second {
		t.Errorf("header %v, idle %v, write %v", s.ReadTimeout, s.IdleTimeout, s.WriteTimeout)
	}
	if got := s.HeaderReceived(&fasthttp.RequestHeader{}).ReadTimeout; got != 60*time.Second {
		t.Errorf("body %v", got)
	}
}

// Hardening 33 with shorter times and fewer connections.
func TestSlowConnectionsAreCutAndHinderNobody(t *testing.T) {
	const patience = 300 * time.Millisecond
	h := open(t, newAccess(), func(o *Options) {
		o.Timeouts = Timeouts{Header: patience, Body: 2 * patience, Idle: patience}
	})
	type slow struct {
		r      *bufio.Reader
		what   string
		status int
	}
	var all []slow
	for range 100 {
		for what, request := range map[string]string{"headers": getHead, "body": postHead + "Content-Length: 5\r\n\r\n12", "silence": "", "idle": getHead + "\r\n"} {
			conn, r := dial(t, h.addr)
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			all = append(all, slow{r, what, map[string]int{"headers": 408, "body": 408, "silence": 408, "idle": 200}[what]})
		}
	}
	start := time.Now()
	if r := h.do(t, call{method: "GET", path: "/v1/health"}); r.StatusCode != 200 || time.Since(start) > time.Second {
		t.Errorf("a quick client: %d after %v", r.StatusCode, time.Since(start))
	}
	for _, s := range all {
		resp, err := http.ReadResponse(s.r, nil)
		if err != nil || resp.StatusCode != s.status {
			t.Fatalf("%s: %v %v", s.what, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if _, err := s.r.ReadByte(); err != io.EOF {
			t.Fatalf("%s: the connection is still open: %v", s.what, err)
		}
	}
}

func TestAnEventStreamOutlivesEveryTimeout(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.Timeouts = Timeouts{Header: 50 * time.Millisecond, Body: 50 * time.Millisecond, Idle: 50 * time.Millisecond, Write: 50 * time.Millisecond}
	})
	_, r := h.listen(t, nil)
	ended := make(chan error, 1)
	go func() { _, err := next(r); ended <- err }()
	select {
	case err := <-ended:
		t.Errorf("it ended: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	h.bus.Close()
	<-ended
}
