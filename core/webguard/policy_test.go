package webguard

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// request returns a request from 127.0.0.1 with the given headers, each written as "Name: value".
func request(method string, headers ...string) *fasthttp.RequestCtx {
	var r fasthttp.Request
	r.Header.SetMethod(method)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&r, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, nil)
	return ctx
}

func TestRequestsFromOtherSitesAreRefused(t *testing.T) {
	plain := &Policy{}
	behind := &Policy{UnknownTLS: true}
	trusting := &Policy{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	dev := &Policy{Dev: true}
	set := &Policy{Origins: []string{"https://app.example"}, BaseURL: "https://Public.example:443/ropewalk"}
	for _, c := range []struct {
		policy  *Policy
		method  string
		headers []string
		allowed bool
	}{
		{plain, "POST", nil, true},
		{plain, "POST", []string{"Host: a.example", "Origin: http://a.example"}, true},
		{plain, "POST", []string{"Host: a.example:80", "Origin: http://a.example"}, true},
		{plain, "POST", []string{"Host: a.example", "Origin: https://a.example"}, false},
		{plain, "POST", []string{"Host: a.example", "Origin: https://a.example", "X-Forwarded-Proto: https"}, false},
		{trusting, "POST", []string{"Host: a.example", "Origin: https://a.example"}, false},
		{trusting, "POST", []string{"Host: a.example", "Origin: https://a.example", "X-Forwarded-Proto: https"}, true},
		{trusting, "POST", []string{"Host: a.example", "Origin: http://a.example", "X-Forwarded-Proto: https"}, false},
		{behind, "POST", []string{"Host: a.example", "Origin: https://a.example"}, true},
		{behind, "POST", []string{"Host: a.example", "Origin: https://b.example"}, false},
		{behind, "POST", []string{"Host: a.example", "Origin: https://a.example:80"}, false},
		{plain, "POST", []string{"Host: a.example", "Origin: http://b.example"}, false},
		{plain, "POST", []string{"Host: a.example", "Origin: http://a.example:81"}, false},
		{plain, "POST", []string{"Host: localhost", "Origin: http://localhost:5173"}, false},
		{plain, "POST", []string{"Origin: null"}, false},
		{plain, "POST", []string{"Host: a.example", "Origin: http://a.example", "Origin: http://a.example"}, false},
		{plain, "POST", []string{"Sec-Fetch-Site: cross-site"}, false},
		{plain, "POST", []string{"Sec-Fetch-Site: same-site"}, false},
		{plain, "POST", []string{"Sec-Fetch-Site: same-origin"}, true},
		{plain, "POST", []string{"Sec-Fetch-Site: none"}, true},
		{plain, "GET", []string{"Sec-Fetch-Site: cross-site"}, true},
		{plain, "GET", []string{"Origin: http://b.example"}, false},
		{dev, "GET", nil, true},
		{dev, "GET", []string{"Origin: http://b.example"}, false},
		{dev, "GET", []string{"Host: localhost:1", "Origin: http://[::1]:5173"}, true},
		{dev, "GET", []string{"Host: localhost:1", "Sec-Fetch-Site: same-origin"}, true},
		{dev, "GET", []string{"Host: localhost:1", "Sec-Fetch-Site: none"}, true},
		{dev, "GET", []string{"Host: localhost:1", "Sec-Fetch-Site: same-site"}, true}, // another port of this machine
		{dev, "GET", []string{"Host: dev.example", "Sec-Fetch-Site: same-site"}, false},
		{dev, "GET", []string{"Host: localhost:1", "Sec-Fetch-Site: cross-site"}, false},
		{dev, "HEAD", []string{"Host: localhost:1", "Sec-Fetch-Site: cross-site"}, false},
		{dev, "GET", []string{"Host: localhost:1", "Sec-Fetch-Site: cross-site", "Referer: https://b.example/"}, false},
		{dev, "GET", []string{"Host: localhost:1", "Sec-Fetch-Site: cross-site", "Referer: http://127.0.0.1:5173/x"}, true},
		{dev, "POST", []string{"Host: localhost:1", "Sec-Fetch-Site: cross-site", "Referer: http://127.0.0.1:5173/x"}, false},
		{dev, "POST", []string{"Origin: http://localhost:5173"}, true},
		{dev, "POST", []string{"Origin: http://localhost.b.example"}, false},
		{dev, "POST", []string{"Origin: file://localhost"}, false},
		{dev, "POST", []string{"Origin: http://user@localhost"}, false},
		{set, "POST", []string{"Host: x", "Origin: https://APP.example"}, true},
		{set, "POST", []string{"Host: x", "Origin: http://app.example"}, false},
		{set, "POST", []string{"Host: x", "Origin: https://public.example"}, true},
		{set, "POST", []string{"Host: x", "Origin: http://public.example"}, false},
		{set, "POST", []string{"Host: x", "Origin: https://public.example/ropewalk"}, false},
	} {
		if got := c.policy.OriginAllowed(request(c.method, c.headers...)); got != c.allowed {
			t.Errorf("%s %q: allowed is %v", c.method, c.headers, got)
		}
	}
}

func TestOnlyTrustedProxiesMayStateTheClientsAddress(t *testing.T) {
	trusting := &Policy{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		policy          *Policy
		headers         []string
		scheme, address string
	}{
		{trusting, nil, "http", "127.0.0.1"},
		{trusting, []string{"X-Forwarded-Proto: https, http", "X-Forwarded-For: 6.6.6.6, 9.9.9.9, 10.1.1.1"}, "https", "9.9.9.9"},
		{trusting, []string{`X-Forwarded-Proto: x"y`, "X-Forwarded-For: nonsense"}, "http", "127.0.0.1"},
		{&Policy{}, []string{"X-Forwarded-Proto: https", "X-Forwarded-For: 9.9.9.9"}, "http", "127.0.0.1"},
	} {
		ctx := request("GET", append([]string{"Host: a.example"}, c.headers...)...)
		if got := c.policy.Scheme(ctx); got != c.scheme {
			t.Errorf("%q: the scheme is %s, want %s", c.headers, got, c.scheme)
		}
		if got := c.policy.ClientAddress(ctx); got != c.address {
			t.Errorf("%q: the client is %s, want %s", c.headers, got, c.address)
		}
		if got, want := c.policy.Address(ctx), c.scheme+"://a.example"; got != want {
			t.Errorf("%q: the address is %s, want %s", c.headers, got, want)
		}
	}
	if got := (&Policy{BaseURL: "https://x.example/"}).Address(request("GET")); got != "https://x.example" {
		t.Errorf("the configured address is %s", got)
	}
}

func TestARepeatedHeaderIsRefused(t *testing.T) {
	h := &request("GET", "A: 1", "A: 2", "B:  x ").Request.Header
	if _, ok := Single(h, "A"); ok {
		t.Error("the repeated header A was accepted")
	}
	if v, ok := Single(h, "B"); !ok || string(v) != "x" {
		t.Errorf("B is %q", v)
	}
	if v, ok := Single(h, "C"); !ok || v != nil {
		t.Errorf("C is %q", v)
	}
	for text, want := range map[string]string{"Bearer x": "x", "bearer  x ": "x", "Basic x": "", "Bearer": "", "": ""} {
		if got := Bearer(text); got != want {
			t.Errorf("%q: the token is %q", text, got)
		}
	}
}

func FuzzNoOtherNameIsMistakenForThisMachine(f *testing.F) {
	for _, seed := range []string{"localhost", "127.0.0.1:1", "[::1]", "evil.example", "localhost.evil.example", "localhost:80@evil.example", "LOCALHOST", "[::ffff:127.0.0.1]:1", "0x7f.1", "127.1"} {
		f.Add(seed)
	}
	p := &Policy{Dev: true}
	f.Fuzz(func(t *testing.T, host string) {
		name, _ := hostname(strings.ToLower(host))
		local := name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasPrefix(name, "127.") || strings.Contains(name, ":")
		if p.hostAllowed(strings.ToLower(host), net.IPv4(127, 0, 0, 1)) && !local {
			t.Errorf("the Host %q was accepted", host)
		}
		if p.originAllowed("http://"+host, "localhost:27247", "http") && !local {
			t.Errorf("the Origin http://%s was accepted", host)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"localhost", "localhost:80", "[::1]:80", "127.0.0.1", "evil.test", "[::ffff:127.0.0.1]", "localhost.", "[::1", "a:b:c", "[::1]x"} {
		f.Add(seed)
	}
	s := &Policy{Dev: true}
	f.Fuzz(func(t *testing.T, host string) {
		host = strings.ToLower(host)
		if !s.hostAllowed(host, net.IPv4(127, 0, 0, 1)) {
			return
		}
		if strings.ContainsAny(host, "\"\\ \t\r\n\x00<>@/?#,;") {
			t.Errorf("%q was accepted, but must not be echoed in headers", host)
		}
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]")
		}
		ip := net.ParseIP(name)
		if name != "localhost" && !strings.HasSuffix(name, ".localhost") && (ip == nil || !ip.IsLoopback()) {
			t.Errorf("%q was accepted, but is not this machine", host)
		}
	})
}

func TestClientCertificatesAreAcceptedOnlyFromTrustedProxies(t *testing.T) {
	const hash = "Hash=" + "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	const sum = "ABEiM0RVZneImaq7zN3u_wARIjNEVWZ3iJmqu8zd7v8"
	trusting := &Policy{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, c := range []struct {
		policy  *Policy
		headers []string
		want    string
	}{
		{trusting, []string{"X-Forwarded-Client-Cert: By=spiffe://a;" + hash + `;Subject="CN=x"`}, sum},
		{trusting, nil, ""},
		{trusting, []string{"X-Forwarded-Client-Cert: Hash=00"}, ""},
		{trusting, []string{"X-Forwarded-Client-Cert: " + hash + "," + hash}, ""},
		{trusting, []string{"X-Forwarded-Client-Cert: " + hash, "X-Forwarded-Client-Cert: " + hash}, ""},
		{&Policy{}, []string{"X-Forwarded-Client-Cert: " + hash}, ""},
	} {
		if got := c.policy.ClientCertificate(request("GET", c.headers...)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.headers, got, c.want)
		}
	}
}
