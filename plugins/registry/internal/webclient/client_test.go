package webclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// canary starts a listener on loopback that counts connections.
func canary(t *testing.T) (port string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, accepted
}

// Addresses are checked after they are resolved, however they are written.
func TestPrivateAddressesAreRefusedInEveryForm(t *testing.T) {
	port, accepted := canary(t)
	loopback := []string{
		"127.0.0.1", "127.1.2.3", "127.255.255.254", "localhost", "LOCALHOST", "localhost.", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "0", "0.0.0.0", "[::]",
	}
	others := []string{
		"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.0.1",
		"100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"[fe80::1]", "[fc00::1]", "[fd00::1]", "[ff02::1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]",
		"[2001:db8::1]", "[2002:7f00:1::]", "[100::1]", "[fec0::1]",
	}
	tried := 0
	for address, hosts := range map[string][]string{
		"https://registry.example.com": slices.Concat(loopback, others),
		"http://127.0.0.1:1":           others, // a registry on loopback may name files on loopback, but not at other internal addresses
	} {
		c := client(t, Options{URL: address, Timeout: 20 * time.Second})
		for _, host := range hosts {
			tried++
			body, err := c.Download(t.Context(), "https://"+host+":"+port+"/x")
			if err == nil {
				_ = body.Close()
			}
			if !errors.Is(err, plugins.ErrUnavailable) || strings.Contains(err.Error(), "timeout") {
				t.Errorf("%s, with the registry at %s: got %v", host, address, err)
			}
		}
	}
	if tried < 60 {
		t.Fatalf("only %d addresses were tried", tried)
	}
	if n := accepted.Load(); n != 0 {
		t.Fatalf("%d connections arrived", n)
	}
}

func TestPrivateNetworksAreAllowedOnlyByTheOperator(t *testing.T) {
	for _, private := range []bool{false, true} {
		timeout := 20 * time.Second // for a rejection, which is immediate
		if private {
			timeout = 500 * time.Millisecond // there may be no such host
		}
		v6 := client(t, Options{URL: "https://registry.example.com", Private: private, Timeout: timeout})
		if _, err := v6.Download(t.Context(), "https://[fd00::1]:1/x"); errors.Is(err, ssrf.ErrProhibitedIP) == private {
			t.Errorf("allowed %t: got %v", private, err)
		}
		c := client(t, Options{URL: "https://registry.example.com", Private: private, Timeout: timeout})
		_, err := c.Download(t.Context(), "https://10.255.255.1:1/x")
		if blocked := errors.Is(err, ssrf.ErrProhibitedIP); blocked == private {
			t.Errorf("allowed %t: got %v", private, err)
		}
		patient := client(t, Options{URL: "https://registry.example.com", Private: private})
		if _, err := patient.Download(t.Context(), "https://169.254.169.254/x"); !errors.Is(err, ssrf.ErrProhibitedIP) {
			t.Errorf("link-local: got %v", err)
		}
	}
}

func TestAPIRequestsCannotReachPrivateAddressesEither(t *testing.T) {
	for _, address := range []string{"https://10.255.255.1:1", "https://192.168.0.1:1", "https://[fd00::1]:1", "https://169.254.169.254", "https://127.1:1"} {
		c := client(t, Options{URL: address})
		if err := c.Get(t.Context(), "/x", nil, &struct{}{}); !errors.Is(err, plugins.ErrUnavailable) || !errors.Is(err, ssrf.ErrProhibitedIP) {
			lookup := &net.DNSError{}
			if !errors.As(err, &lookup) {
				t.Errorf("%s: got %v", address, err)
			}
		}
	}
}

func TestAPublicRegistryMayOnlyLinkToFilesOverHTTPS(t *testing.T) {
	c := client(t, Options{URL: "https://registry.example.com"})
	for _, address := range []string{
		"http://files.example.com/x", "http://127.0.0.1:1/x", "ftp://files.example.com/x", "file:///etc/passwd", "https:///x", "x", "https://user:password@files.example.com/x", "https://files.example.com:port/x",
	} {
		if body, err := c.Download(t.Context(), address); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("%s: got %v, %v, want invalid", address, body, err)
		}
		if u, err := url.Parse(address); err == nil && u.User == nil && c.files.CheckRedirect(&http.Request{URL: u}, nil) == nil {
			t.Errorf("a file was loaded from %s after a redirect", address)
		}
	}
}

func TestRedirects(t *testing.T) {
	port, accepted := canary(t)
	var looped atomic.Int64
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/json":
			_, _ = w.Write([]byte(`{"ok": true}`))
		case "/other":
			http.Redirect(w, r, "http://127.0.0.1:"+port+"/json", http.StatusFound)
		case "/private":
			http.Redirect(w, r, "https://10.0.0.1/x", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			looped.Add(1)
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}
	})
	c := client(t, Options{URL: base, Timeout: 20 * time.Second})
	var answer struct{ OK bool }
	if err := c.Get(t.Context(), "/same", nil, &answer); err != nil || !answer.OK {
		t.Fatalf("within the registry: got %v", err)
	}
	for _, path := range []string{"/other", "/private", "/file", "/loop"} {
		if err := c.Get(t.Context(), path, nil, &answer); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("requesting %s: got %v", path, err)
		}
	}
	if looped.Load() != maxRedirects+1 {
		t.Errorf("a redirect loop was followed %d times, want %d", looped.Load(), maxRedirects)
	}
	for _, path := range []string{"/private", "/file", "/loop"} {
		if _, err := c.Download(t.Context(), base+path); err == nil {
			t.Errorf("loading %s was not refused", path)
		}
	}
	if accepted.Load() != 0 {
		t.Error("the query was sent to another host")
	}
}

func TestTheTokenIsSentOnlyToTheConfiguredHost(t *testing.T) {
	seen := make(chan string, 4)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") })
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		if r.URL.Path == "/file" {
			http.Redirect(w, r, strings.Replace(other, "127.0.0.1", "localhost", 1)+"/file", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	})
	c := client(t, Options{URL: base, Token: "canary"})
	if err := c.Get(t.Context(), "/x", nil, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	body, err := c.Download(t.Context(), base+"/file")
	if err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	body, err = c.Download(t.Context(), other+"/file")
	if err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	for i, want := range []string{"Bearer canary", "Bearer canary", "", ""} {
		if got := <-seen; got != want {
			t.Errorf("request %d carried %q, want %q", i, got, want)
		}
	}
}

func TestResponses(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"a response":                         {200, `{"ok": true}`, nil},
		"not found, from the registry":       {404, `{"error": "Server not found"}`, plugins.ErrNotFound},
		"not found, from a web server":       {404, "<html>404</html>", plugins.ErrUnavailable},
		"gone":                               {410, `{}`, plugins.ErrNotFound},
		"an invalid request":                 {400, `{}`, plugins.ErrInvalid},
		"a request that cannot be processed": {422, `{}`, plugins.ErrInvalid},
		"a forbidden request":                {403, `{}`, plugins.ErrUnavailable},
		"too many requests":                  {429, `{}`, plugins.ErrUnavailable},
		"an internal error":                  {500, `{}`, plugins.ErrUnavailable},
		"a page for people":                  {200, "<html>", plugins.ErrUnavailable},
		"a response with the wrong type":     {200, `{"ok": "yes"}`, plugins.ErrUnavailable},
		"half a response":                    {200, `{"ok": `, plugins.ErrUnavailable},
		"nothing":                            {200, ``, plugins.ErrUnavailable},
		"nine megabytes":                     {200, `"` + strings.Repeat("x", 9<<20) + `"`, plugins.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			var answer struct{ OK bool }
			if err := client(t, Options{URL: base}).Get(t.Context(), "/x", nil, &answer); !errors.Is(err, c.want) || err == nil && !answer.OK {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestARegistryThatIsUnavailableOrSilentIsReported(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	_ = l.Close()
	if err := client(t, Options{URL: address}).Get(t.Context(), "/x", nil, nil); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("unreachable: got %v", err)
	}
	released := make(chan struct{})
	silent := serve(t, func(http.ResponseWriter, *http.Request) { <-released })
	defer close(released)
	if err := client(t, Options{URL: silent, Timeout: 50 * time.Millisecond}).Get(t.Context(), "/x", nil, nil); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("silent: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client(t, Options{URL: silent}).Get(ctx, "/x", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned: got %v", err)
	}
}

func TestErrorsShowNoSignedAddress(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	c := client(t, Options{URL: base})
	for _, address := range []string{base + "/x?signature=canary", "http://127.0.0.1:1/x?signature=canary", "ftp://x/?signature=canary", "http://u:canary@127.0.0.1/"} {
		if _, err := c.Download(t.Context(), address); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v", err)
		}
	}
}

func TestNoClientIsCreatedForARefusedAddress(t *testing.T) {
	for _, address := range []string{"http://registry.example.com", "https://a:b@registry.example.com", "registry.example.com", ""} {
		if c, err := New(Options{URL: address}); err == nil {
			t.Errorf("%q: got %+v", address, c)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://registry.example.com": true, "https://registry.example.com/mcp/": true, "http://127.0.0.1:80": true, "http://localhost": true, "http://[::1]:1": true,
		"http://registry.example.com": false, "": false, "registry.example.com": false, "ftp://x": false, "https://u:p@x": false, "https://x?a=b": false, "https://x#f": false, "http://127.0.0.1:": false, "https://x:70000": false, "https:x": false, "http://127.0.0.1.example.com": false,
	} {
		if err := CheckURL(address); ok != (err == nil) {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
