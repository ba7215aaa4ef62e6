package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/intake"
)

func TestTheBodyLimitUnderV1IsOneMebibyte(t *testing.T) {
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
		{"exactly the limit", "/v1/tools/call", fit, 200},
		{"one byte more", "/v1/tools/call", fit + " ", 413},
		{"one byte more on an unknown path", "/v1/nothing", fit + " ", 413},
		{"far more", "/v1/tools/call", strings.Repeat("x", 8<<20), 413},
		{"exactly the limit, mounted", "/mounted", strings.Repeat("x", 2<<20), 200},
		{"one byte more, mounted", "/mounted", strings.Repeat("x", 2<<20+1), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := h.do(t, call{method: "POST", path: c.path, body: c.body})
			if r.StatusCode != c.status || (c.status == 413 && r.code() != "payload_too_large") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
}

func TestAClientThatReadsOnlyAfterSendingEverythingGetsTheError(t *testing.T) {
	h := open(t, newAccess(), nil)
	conn, r := dial(t, h.addr)
	fmt.Fprintf(conn, postHead+"Content-Length: %d\r\n\r\n", 12<<20)
	if _, err := conn.Write(make([]byte, 12<<20)); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 413 {
		t.Errorf("%v %v", resp, err)
	}
}

// Bodies without a length are refused once they are too large, from anonymous clients and from the owner. Until then
// they cannot use much memory.
func TestEndlessChunkedBodiesAreRefusedAndUseLittleMemory(t *testing.T) {
	h := open(t, newAccess(), nil)
	chunk := []byte("10000\r\n" + strings.Repeat("x", 0x10000) + "\r\n")
	heap := watchHeap(t)
	var wg sync.WaitGroup
	for i := range 200 {
		sender := []string{"", "Authorization: Bearer the-right-key-0123\r\n"}[i%2]
		conn, r := dial(t, h.addr)
		wg.Go(func() {
			fmt.Fprint(conn, postHead+sender+"Transfer-Encoding: chunked\r\n\r\n")
			for range 1600 { // 100 MiB
				if _, err := conn.Write(chunk); err != nil {
					break
				}
			}
			if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 413 {
				t.Errorf("with the header %q: %v %v", sender, resp, err)
			}
		})
	}
	wg.Wait()
	if grown := heap(); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// watchHeap returns a function that returns the maximum growth of the heap since watchHeap was called.
func watchHeap(t testing.TB) func() uint64 {
	t.Helper()
	read := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	runtime.GC()
	before, peak := read(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				peak = max(peak, read())
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return max(peak, before) - before
	}
}

func TestSlowAnonymousBodiesDelayOnlyAnonymousRequests(t *testing.T) {
	h := open(t, newAccess(), nil)
	for i := range intake.LargeBodies {
		conn := dialFrom(t, fmt.Sprintf("127.0.1.%d", i/2+1), h.addr)
		fmt.Fprintf(conn, postHead+"Content-Length: %d\r\n\r\n%s", maxBody, strings.Repeat("x", intake.SmallBody+1))
	}
	h.await(t, "the slow requests are not being received", func() bool {
		_, anonymous := h.bodies.Receiving()
		return anonymous == intake.LargeBodies
	})
	start := time.Now()
	large := `{"tool":"a__b","pad":"` + strings.Repeat("x", maxBody/2) + `"}`
	if r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: large}); r.StatusCode != 200 || time.Since(start) > 30*time.Second {
		t.Errorf("an authenticated client, a large body: %d after %v", r.StatusCode, time.Since(start))
	}
	small := call{method: "POST", path: "/v1/auth/login", body: `{"key":"` + h.access.key + `"}`, header: map[string]string{"Authorization": anonymous}}
	if r := h.do(t, small); r.StatusCode != 200 || time.Since(start) > 30*time.Second {
		t.Errorf("an anonymous client, a small body: %d after %v", r.StatusCode, time.Since(start))
	}
}

func TestSlowBodiesFromOneClientDoNotTakeAllPlaces(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) { o.Timeouts.Body = time.Minute })
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	for range intake.LargeBodies {
		conn, _ := dial(t, h.addr)
		fmt.Fprintf(conn, postHead+"Authorization: Bearer alice\r\nContent-Length: %d\r\n\r\n%s", maxBody, strings.Repeat("x", intake.SmallBody+1))
	}
	h.await(t, "the slow requests are not being received", func() bool { known, _ := h.bodies.Receiving(); return known > 0 })
	start := time.Now()
	large := `{"tool":"a__b","pad":"` + strings.Repeat("x", maxBody/2) + `"}`
	if r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: large}); r.StatusCode != 200 || time.Since(start) > 30*time.Second {
		t.Errorf("another client's large body: %d after %v", r.StatusCode, time.Since(start))
	}
	if known, _ := h.bodies.Receiving(); known >= intake.LargeBodies {
		t.Errorf("one client has all %d places", known)
	}
}

func TestALargeBodyWithoutAPlaceIsRefusedWithRetryAfter(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) { o.Timeouts.Body = 5 * time.Second })
	for i := range intake.LargeBodies {
		name := fmt.Sprintf("user%d", i/2)
		h.access.user(name, core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
		conn, _ := dial(t, h.addr)
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		fmt.Fprintf(conn, postHead+"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", name, maxBody, strings.Repeat("x", intake.SmallBody+1))
		go drip(conn, stop)
	}
	h.await(t, "the slow requests are not being received", func() bool { known, _ := h.bodies.Receiving(); return known == intake.LargeBodies })
	r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"pad":"` + strings.Repeat("x", intake.SmallBody) + `"}`})
	if r.StatusCode != 503 || r.code() != "unavailable" || r.Header.Get("Retry-After") == "" || !r.Close {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// drip sends the rest of a request one byte at a time.
func drip(conn net.Conn, stop <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}
}

// dialFrom connects from the given loopback address.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestBodiesOfEverySizeArriveComplete(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.MaxBody = 3 << 20
		o.Mounts = append(o.Mounts, func(r Router) {
			r.Post("/echo", func(c *fiber.Ctx) error { return c.Send(c.Body()) })
		})
	})
	for _, size := range []int{0, 1, 511, 512, 513, 8 << 10, intake.SmallBody - 1, intake.SmallBody, intake.SmallBody + 1, 100_000, maxBody, maxBody + 1, 3 << 20} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		conn, r := dial(t, h.addr)
		head := "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
		for _, request := range []string{
			fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, size, body),
			fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n", head, map[bool]string{true: fmt.Sprintf("%x\r\n%s\r\n", size, body)}[size > 0]),
		} {
			if status, got := exchange(t, conn, r, request); status != 200 || got != body { // on one connection, which therefore stays open
				t.Errorf("%d bytes: %d, %d bytes were returned", size, status, len(got))
			}
		}
	}
}

func TestTheHeaderLimitIs16KiB(t *testing.T) {
	h := open(t, newAccess(), nil)
	if r := h.do(t, call{method: "GET", path: "/v1/health", header: map[string]string{"X-Long": strings.Repeat("x", 15<<10)}}); r.StatusCode != 200 {
		t.Errorf("15 KiB: %d", r.StatusCode)
	}
	for name, c := range map[string]call{
		"a header":     {method: "GET", path: "/v1/health", header: map[string]string{"X-Long": strings.Repeat("x", 17<<10)}},
		"the path":     {method: "GET", path: "/v1/" + strings.Repeat("x", 17<<10)},
		"a huge token": {method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "Bearer " + strings.Repeat("x", 16<<10)}},
	} {
		if r := h.do(t, c); r.StatusCode != 431 || r.code() != "headers_too_large" {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
}

func TestTheListenersTimeouts(t *testing.T) {
	h := open(t, newAccess(), nil)
	s := h.router.Server()
	if s.ReadTimeout != 10*time.Second || s.IdleTimeout != 255*time.Second || s.WriteTimeout != 60*time.Second {
		t.Errorf("header %v, idle %v, write %v", s.ReadTimeout, s.IdleTimeout, s.WriteTimeout)
	}
	if got := s.HeaderReceived(&fasthttp.RequestHeader{}).ReadTimeout; got != 60*time.Second {
		t.Errorf("body %v", got)
	}
}

// TestSlowConnectionsAreClosedAndDoNotAffectOthers uses shorter timeouts and fewer connections than a real server.
func TestSlowConnectionsAreClosedAndDoNotAffectOthers(t *testing.T) {
	const patience = 1500 * time.Millisecond
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
	if r := h.do(t, call{method: "GET", path: "/v1/health"}); r.StatusCode != 200 || time.Since(start) > 20*time.Second {
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

func TestAnEventStreamOutlivesAllTimeouts(t *testing.T) {
	const quick = 2 * time.Second // long enough for the request to arrive, even on a busy machine
	h := open(t, newAccess(), func(o *Options) {
		o.Timeouts = Timeouts{Header: quick, Body: quick, Idle: quick, Write: quick}
	})
	_, r := h.listen(t, nil)
	ended := make(chan error, 1)
	go func() { _, err := next(r); ended <- err }()
	select {
	case err := <-ended:
		t.Errorf("the stream ended: %v", err)
	case <-time.After(3 * quick):
	}
	h.bus.Close()
	<-ended
}
