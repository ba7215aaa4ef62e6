package relyingparty

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"code.dny.dev/ssrf"
	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestTheFirstDocumentThatNamesTheIssuerIsUsed(t *testing.T) {
	const realm = issuer + "/realm"
	places := auth.MetadataURLs(realm)
	good := map[string]any{"issuer": realm, "jwks_uri": issuer + "/jwks"}
	path := func(place string) string { return strings.TrimPrefix(place, issuer) }
	to := func(address string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, http.StatusFound) }
	}
	for name, c := range map[string]struct {
		pages map[string]any
		want  error
	}{
		"the first place":                       {map[string]any{path(places[0]): good}, nil},
		"the second place":                      {map[string]any{path(places[1]): good}, nil},
		"the third place":                       {map[string]any{path(places[2]): good}, nil},
		"nowhere":                               {map[string]any{}, plugins.ErrUnavailable},
		"another issuer first":                  {map[string]any{path(places[0]): map[string]any{"issuer": issuer, "jwks_uri": issuer + "/jwks"}, path(places[2]): good}, nil},
		"a redirect to another host first":      {map[string]any{path(places[0]): to("https://www.example.com/"), path(places[2]): good}, nil},
		"an endless redirect first":             {map[string]any{path(places[0]): to(places[0]), path(places[1]): good}, nil},
		"another issuer only":                   {map[string]any{path(places[0]): map[string]any{"issuer": issuer, "jwks_uri": issuer + "/jwks"}}, plugins.ErrUnavailable},
		"the issuer with a slash":               {map[string]any{path(places[0]): map[string]any{"issuer": realm + "/", "jwks_uri": issuer + "/jwks"}}, plugins.ErrUnavailable},
		"no keys in the first, but in the next": {map[string]any{path(places[0]): map[string]any{"issuer": realm}, path(places[1]): good}, nil},
		"keys over http":                        {map[string]any{path(places[0]): map[string]any{"issuer": realm, "jwks_uri": "http://id.example.com/jwks"}}, plugins.ErrUnavailable},
		"keys on loopback":                      {map[string]any{path(places[0]): map[string]any{"issuer": realm, "jwks_uri": "http://127.0.0.1/jwks"}}, plugins.ErrUnavailable},
		"keys on loopback over https":           {map[string]any{path(places[0]): map[string]any{"issuer": realm, "jwks_uri": "https://localhost/jwks"}}, plugins.ErrUnavailable},
		"keys in a file":                        {map[string]any{path(places[0]): map[string]any{"issuer": realm, "jwks_uri": "file:///etc/passwd"}}, plugins.ErrUnavailable},
		"a token endpoint with a password":      {map[string]any{path(places[0]): map[string]any{"issuer": realm, "jwks_uri": issuer + "/jwks", "token_endpoint": "https://a:b@id.example.com"}}, plugins.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			keys := p.pages["/jwks"]
			p.pages = c.pages
			p.pages["/jwks"] = keys
			err := check(t, p.party(func(o *Options) { o.Issuer = realm }), p.token("first", map[string]any{"iss": realm}))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestAProviderThatDoesNotRespondIsAskedForOneDocumentAndLogged(t *testing.T) {
	p, log := newProvider(t), &testkit.Log{}
	p.setDown(true)
	party := p.party(func(o *Options) { o.Issuer, o.Log = issuer+"/realm", log.Logger(hclog.Warn, false) })
	if _, err := party.Metadata(t.Context()); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if len(p.asked) != 1 {
		t.Errorf("the provider received %v, want one request", p.asked)
	}
	if !log.Contains("did not return its metadata; there is no earlier copy") || !log.Contains("connection refused") {
		t.Errorf("got the log %q", log)
	}
}

func TestTheMetadataIsPassedOnAsTheProviderWroteIt(t *testing.T) {
	const wrote = `{ "unknown": [1.0], "issuer": "` + issuer + `", "jwks_uri": "` + issuer + `/jwks" }`
	p := newProvider(t)
	p.pages["/.well-known/openid-configuration"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(wrote)) })
	if got, err := p.party().Metadata(t.Context()); err != nil || string(got) != wrote {
		t.Errorf("got %s, %v", got, err)
	}
	p.pages["/.well-known/openid-configuration"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if _, err := p.party().Metadata(t.Context()); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "openid-configuration is not a metadata document") {
		t.Errorf("a web page instead of the metadata: got %v", err)
	}
}

func TestEachEndpointOfTheMetadataIsChecked(t *testing.T) {
	p := newProvider(t)
	for _, name := range []string{"jwks_uri", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "introspection_endpoint"} {
		for _, address := range []string{"http://id.example.com/x", "https://localhost/x", "https://id.example.com:99999/x"} {
			doc := map[string]any{"issuer": issuer, "jwks_uri": issuer + "/jwks"}
			doc[name] = address
			p.pages["/.well-known/openid-configuration"] = doc
			if _, err := p.party().Metadata(t.Context()); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), name+` "`+address) {
				t.Errorf("%s %s: got %v", name, address, err)
			}
		}
	}
}

func TestAnEndpointMayHaveAQueryAndBeOnLoopbackWithItsIssuer(t *testing.T) {
	for address, of := range map[string]string{
		"https://login.example.net/authorize?tenant=1": issuer, "http://127.0.0.1:5556/authorize?tenant=1": "http://localhost:5556", "https://login.example.net/x": "http://localhost:5556",
	} {
		if err := checkEndpoint(address, of); err != nil {
			t.Errorf("%s of %s: %v", address, of, err)
		}
	}
}

func TestOtherSchemesAreAlsoRefusedOnLoopback(t *testing.T) {
	for _, address := range []string{"ftp://localhost/x", "file://127.0.0.1/x"} {
		if err := CheckURL(address); err == nil || !strings.Contains(err.Error(), "must be an https URL") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

func TestMetadataOutlivesItsProviderByAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		if _, err := party.Metadata(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.setDown(true)
		pass(7 * 24 * time.Hour)
		if _, err := party.Metadata(t.Context()); err != nil {
			t.Errorf("after a week: %v", err)
		}
		synctest.Wait()
		pass(renewEvery)
		if _, err := party.Metadata(t.Context()); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("after that: got %v, want unavailable", err)
		}
	})
}

func TestNoDocumentIsNeededIfTheKeysURLIsConfigured(t *testing.T) {
	p := newProvider(t)
	delete(p.pages, "/.well-known/openid-configuration")
	if err := check(t, p.party(func(o *Options) { o.JWKSURI = issuer + "/jwks" }), p.token("first")); err != nil {
		t.Error(err)
	}
}

func TestKeysAreFetchedFromTheDocumentsURLOrElseFromTheUsualOne(t *testing.T) {
	p := newProvider(t)
	usual := p.party(func(o *Options) { o.Keys = issuer + "/nowhere" })
	if err := check(t, usual, p.token("first")); err != nil {
		t.Errorf("the document names the keys: %v", err)
	}
	p.pages["/.well-known/openid-configuration"] = map[string]any{"issuer": issuer}
	for _, change := range []func(){func() {}, func() { delete(p.pages, "/.well-known/openid-configuration") }} {
		change()
		if err := check(t, p.party(func(o *Options) { o.Keys = issuer + "/jwks" }), p.token("first")); err != nil {
			t.Errorf("no document names the keys: %v", err)
		}
	}
}

// TestNoRedirectOrNameLeadsToAForbiddenAddress counts the connections that a canary accepts.
func TestNoRedirectOrNameLeadsToAForbiddenAddress(t *testing.T) {
	reached := 0
	canary := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	canary.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			reached++
		}
	}
	canary.Start()
	_, port, _ := net.SplitHostPort(canary.Listener.Addr().String())
	loopback := []string{"127.0.0.1", "localhost", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "127.1", "0.0.0.0", "2130706433", "0x7f.1"}
	private := []string{"10.0.0.1", "172.16.0.1", "192.168.1.1", "[fd00::1]"}
	always := []string{"169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "100.64.0.1", "224.0.0.1", "192.0.2.1", "[64:ff9b::7f00:1]"}
	for name, c := range map[string]struct {
		reach   Reach
		blocked []string
	}{
		"a public issuer":           {Reach{}, slices.Concat(loopback, private, always)},
		"an issuer on loopback":     {Reach{Loopback: true}, slices.Concat(private, always)},
		"private networks, allowed": {Reach{Private: true}, slices.Concat(loopback, always[:2], always[3:])},
	} {
		t.Run(name, func(t *testing.T) {
			client := NewClient(c.reach)
			defer client.CloseIdleConnections()
			for _, host := range c.blocked {
				_, err := Fetch(t.Context(), client, "http://"+host+":"+port, "", 100)
				lookup := &net.DNSError{}
				if !errors.Is(err, ssrf.ErrProhibitedIP) && !errors.As(err, &lookup) {
					t.Errorf("%s: got %v, want a blocked address", host, err)
				}
			}
		})
	}
	canary.Close()
	if reached != 0 {
		t.Errorf("the canary was reached %d times", reached)
	}
}

func TestPrivateNetworksAreReachedOnlyIfAllowed(t *testing.T) {
	for _, private := range []bool{false, true} {
		client := NewClient(Reach{Private: private})
		for _, host := range []string{"10.255.255.1", "172.16.255.1", "192.168.255.1", "[fd00::1]"} {
			ctx, cancel := context.WithCancel(t.Context())
			if private { // there may be no such host; a rejection is immediate
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			_, err := Fetch(ctx, client, "https://"+host+":1", "", 100)
			cancel()
			if blocked := errors.Is(err, ssrf.ErrProhibitedIP); blocked == private {
				t.Errorf("%s, allowed %t: got %v", host, private, err)
			}
		}
		client.CloseIdleConnections()
	}
}

func TestLoopbackIsReachableIfTheIssuerIsThere(t *testing.T) {
	client := NewClient(Reach{Loopback: true})
	defer client.CloseIdleConnections()
	for _, host := range []string{"127.0.0.1", "127.255.255.254", "[::1]"} {
		if _, err := Fetch(t.Context(), client, "http://"+host+":1", "", 100); err == nil || errors.Is(err, ssrf.ErrProhibitedIP) {
			t.Errorf("%s: got %v, want a refused connection", host, err)
		}
	}
}

func TestValidEndpointAddressesAreRecognised(t *testing.T) {
	for address, want := range map[string]string{
		"https://id.example.com": "", "https://id.example.com:8443/realms/one": "", "http://localhost:8080": "", "http://LOCALHOST": "", "http://127.0.0.9/x": "", "http://[::1]:8080": "",
		"http://[::ffff:127.0.0.1]": "", "http://id.example.com": "https URL", "http://10.0.0.1": "https URL", "http://127.0.0.1.example.com": "https URL", "ftp://id.example.com": "https URL",
		"": "absolute URL", "id.example.com": "absolute URL", "https:id.example.com": "absolute URL", "https:///path": "absolute URL", "https://[": "absolute URL",
		"https://a:b@id.example.com": "user", "https://id.example.com/?x=1": "query", "https://id.example.com/?": "query", "https://id.example.com/#x": "query",
		"https://id.example.com:99999": "has a port that is not from 1 to 65535", "https://id.example.com:0/realm": "has a port that is not from 1 to 65535",
		"https://id.example.com:": "has a colon but no port", "https://:443": "has no host", "https://id.example.com:65535": "",
	} {
		if err := CheckURL(address); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", address, err, want)
		}
		if on, is := OnLoopback(address), want == "" && strings.HasPrefix(address, "http:"); on != is {
			t.Errorf("%q is on loopback: %t, want %t", address, on, is)
		}
	}
}

func TestRedirectsStayOnTheSameHost(t *testing.T) {
	const from = "https://id.example.com/jwks"
	for to, good := range map[string]bool{
		"https://id.example.com/keys": true, "http://id.example.com/jwks": false, "https://id.example.com:8443/jwks": false,
		"https://id.example.com.example.net/jwks": false, "https://example.com/jwks": false,
	} {
		if err := sameHost(httptest.NewRequest(http.MethodGet, to, nil), []*http.Request{httptest.NewRequest(http.MethodGet, from, nil)}); (err == nil) != good {
			t.Errorf("from %s to %s: %v", from, to, err)
		}
	}
}

func TestARequestTakesAtMostTenSeconds(t *testing.T) {
	if got := NewClient(Reach{}).Timeout; got != 10*time.Second {
		t.Errorf("got %v", got)
	}
}

func TestResponsesAreBounded(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept"); got != "application/json" {
			t.Errorf("asked for %q", got)
		}
		if got := r.Header.Values("Authorization"); len(got) > 0 {
			t.Errorf("without a bearer token, the client sends %q", got)
		}
		_, _ = w.Write([]byte("small"))
	})
	mux.HandleFunc("/mine", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Header.Get("Authorization"))) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 101)) })
	mux.HandleFunc("/same", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/small", http.StatusFound) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	for hops, to := range []string{"/small", "/hops-1", "/hops-2", "/hops-3"} {
		mux.Handle(fmt.Sprintf("/hops-%d", hops+1), http.RedirectHandler(to, http.StatusFound))
	}
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(r.Host)
		http.Redirect(w, r, "http://localhost:"+port+"/small", http.StatusFound)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	client := NewClient(Reach{Loopback: true})
	defer client.CloseIdleConnections()
	for path, good := range map[string]bool{"/small": true, "/same": true, "/hops-3": true, "/hops-4": false, "/large": false, "/loop": false, "/other": false, "/missing": false} {
		body, err := Fetch(t.Context(), client, server.URL+path, "", 100)
		if (err == nil) != good || good && string(body) != "small" {
			t.Errorf("%s: got %q, %v", path, body, err)
		}
	}
	if body, err := Fetch(t.Context(), client, server.URL+"/mine", "the-token", 100); err != nil || string(body) != "Bearer the-token" {
		t.Errorf("the client sends %q (%v)", body, err)
	}
}
