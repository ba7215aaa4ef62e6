package accounts

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// attack is a login that an app, its authorization server or another server tries to subvert.
type attack struct {
	name     string
	before   func(p, evil *provider)                                 // prepares the servers
	response func(t *testing.T, r *rig, evil *provider, a *Response) // changes what the browser returns
	slow     bool                                                    // requests time out soon
	says     string                                                  // part of the error
}

// responds makes a path of a provider respond with do.
func responds(path string, do http.HandlerFunc) func(p, evil *provider) {
	return func(p, _ *provider) {
		p.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				do(w, r)
			}
			return r.URL.Path == path
		}
	}
}

// sends makes a path of a provider respond with a JSON document.
func sends(path, document string) func(p, evil *provider) {
	return responds(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(document))
	})
}

// challenges makes the app refuse requests with a challenge.
func challenges(header string) func(p, evil *provider) {
	return responds("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", header)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// hangs responds until the client gives up.
func hangs(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte("{"))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// redirects sends a request to the same path of another server.
func redirects(status int, path string) func(p, evil *provider) {
	return func(p, evil *provider) {
		responds(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL+path, status) })(p, evil)
	}
}

func describes(name string, value any) func(p, evil *provider) {
	return func(p, _ *provider) { p.metadata[name] = value }
}

func resourceIs(change func(address string) string) func(p, evil *provider) {
	return func(p, _ *provider) { p.resource["resource"] = change(p.URL + "/mcp") }
}

// silent keeps an authorization server from stating its issuer in its responses.
func silent(p, _ *provider) { p.metadata["authorization_response_iss_parameter_supported"] = false }

// wantsProofs makes the app require bound tokens.
func wantsProofs(p, _ *provider) {
	p.resource["dpop_bound_access_tokens_required"] = true
	p.metadata["dpop_signing_alg_values_supported"] = []string{"RS256", "ES256"}
}

func attacks() []attack {
	const token, metadata, linkLocal = "/token", "/.well-known/oauth-authorization-server", "http://169.254.169.254/latest/meta-data"
	return []attack{
		// The app's metadata (RFC 9728 section 7).
		{name: "metadata in a file", before: challenges(`Bearer resource_metadata="file:///etc/passwd"`), says: "is not a URL"},
		{name: "metadata at a cloud's metadata address", before: challenges(`Bearer resource_metadata="` + linkLocal + `"`), says: "cannot be reached"},
		{name: "metadata with a password", before: challenges(`Bearer resource_metadata="https://a:b@far.example/x"`), says: "is not a URL"},
		{name: "a resource at another port", before: resourceIs(func(string) string { return "http://127.0.0.1:1/mcp" }), says: "a different resource"},
		{name: "a resource with another scheme", before: resourceIs(func(a string) string { return strings.Replace(a, "http:", "https:", 1) }), says: "a different resource"},
		{name: "a resource with a query", before: resourceIs(func(a string) string { return a + "?x" }), says: "a different resource"},
		{name: "a resource with a fragment", before: resourceIs(func(a string) string { return a + "#x" }), says: "a different resource"},
		{name: "a resource with another path", before: resourceIs(func(a string) string { return strings.ToUpper(a[:4]) + a[4:len(a)-3] + "MCP" }), says: "a different resource"},
		{name: "metadata of the app that never ends", before: responds("/.well-known/oauth-protected-resource/mcp", hangs), slow: true, says: "cannot be"},

		// The metadata of the authorization server (RFC 8414 section 6).
		{name: "an issuer at another port", before: describes("issuer", "http://127.0.0.1:1"), says: "another issuer"},
		{name: "an issuer with a query", before: func(p, _ *provider) { p.metadata["issuer"] = p.URL + "?x" }, says: "another issuer"},
		{name: "the metadata of another server", before: redirects(http.StatusFound, metadata), says: "another issuer"},
		{name: "metadata that never ends", before: responds(metadata, hangs), slow: true, says: "did not send its whole response"},
		{name: "metadata that is a list", before: sends(metadata, `[]`), says: "did not send a valid JSON object"},
		{name: "metadata that is a page", before: sends(metadata, `<html>`), says: "did not send a valid JSON object"},
		{name: "a header that is too large", before: responds(metadata, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}), says: "cannot be reached"},
		{name: "an authorization endpoint that contains a redirect URI", before: func(p, _ *provider) {
			p.metadata["authorization_endpoint"] = p.URL + "/authorize?redirect_uri=https://evil.example"
		}, says: "already has the parameter redirect_uri"},
		{name: "an authorization endpoint that contains a client ID", before: func(p, _ *provider) {
			p.metadata["authorization_endpoint"] = p.URL + "/authorize?client_id=evil"
		}, says: "already has the parameter client_id"},
		{name: "an authorization endpoint that contains a request", before: func(p, _ *provider) {
			p.metadata["authorization_endpoint"] = p.URL + "/authorize?request_uri=https://evil.example"
		}, says: "already has the parameter request_uri"},
		{name: "a token endpoint with a password", before: describes("token_endpoint", "https://a:b@idp.example/token"), says: "is not a URL"},
		{name: "a token endpoint with a fragment", before: describes("token_endpoint", "https://idp.example/token#x"), says: "is not a URL"},
		{name: "a token endpoint at a cloud's metadata address", before: describes("token_endpoint", linkLocal), says: "cannot be reached"},
		{name: "a registration endpoint at a cloud's metadata address", before: describes("registration_endpoint", linkLocal), says: "cannot be reached"},
		{name: "registration that never ends", before: responds("/register", hangs), slow: true, says: "did not send its whole response"},
		{name: "registration with a long secret", before: sends("/register", `{"client_id":"c","client_secret":"`+strings.Repeat("x", 5000)+`"}`), says: "did not register"},

		// The response in the browser (RFC 9207, RFC 9700 sections 4.4, 4.5 and 4.7).
		{name: "the response of another server", response: func(_ *testing.T, _ *rig, evil *provider, a *Response) { a.Issuer = evil.URL }, says: "the response did not come from"},
		{name: "the response of another server, to a server that does not send its issuer", before: silent,
			response: func(_ *testing.T, _ *rig, evil *provider, a *Response) { a.Issuer = evil.URL }, says: "the response did not come from"},
		{name: "the response of a server that does not send its issuer, to another such server", before: silent,
			response: func(_ *testing.T, _ *rig, evil *provider, a *Response) {
				a.Issuer, a.Mark = "", hashOf(evil.URL)[:markLength]
			}, says: "the response did not come from"},
		{name: "the response of a server with a configured client, to a server that does not send its issuer", before: silent,
			response: func(_ *testing.T, _ *rig, _ *provider, a *Response) { a.Issuer, a.Mark = "", "" }, says: "the response did not come from"},
		{name: "the mark of another server", response: func(_ *testing.T, _ *rig, evil *provider, a *Response) { a.Mark = hashOf(evil.URL)[:markLength] }, says: "the response did not come from"},
		{name: "the code of another login", before: func(p, _ *provider) {
			p.codes["stolen"] = url.Values{"code_challenge": {"of another verifier"}, "redirect_uri": {callback}, "resource": {p.URL + "/mcp"}, "client_id": {"registered"}}
		}, response: func(_ *testing.T, _ *rig, _ *provider, a *Response) { a.Code = "stolen" }, says: "invalid_grant"},
		{name: "a state that has expired", response: func(t *testing.T, r *rig, _ *provider, a *Response) {
			a.State = "expired"
			putLogin(t, r, stateKey(a.State), a.Binding, time.Now().Add(-time.Second))
		}, says: "not in progress"},
		{name: "the state of another kind of login", response: func(t *testing.T, r *rig, _ *provider, a *Response) {
			a.State = "login"
			putLogin(t, r, hashOf(a.State), a.Binding, time.Now().Add(time.Minute))
		}, says: "not in progress"},

		// The response of the token endpoint (RFC 6749 sections 5 and 10, RFC 9449 section 5).
		{name: "a token of another type", before: sends(token, `{"access_token":"a","token_type":"mac"}`), says: "did not send a valid response"},
		{name: "a bound token that nobody asked for", before: sends(token, `{"access_token":"a","token_type":"DPoP"}`), says: "did not send a valid response"},
		{name: "no token", before: sends(token, `{"token_type":"bearer"}`), says: "did not send a valid response"},
		{name: "a token with a line break", before: sends(token, `{"access_token":"a\r\nX-Evil: 1","token_type":"bearer"}`), says: "did not send a valid response"},
		{name: "a token with a space", before: sends(token, `{"access_token":"a b","token_type":"bearer"}`), says: "did not send a valid response"},
		{name: "a token that is not ASCII", before: sends(token, `{"access_token":"é","token_type":"bearer"}`), says: "did not send a valid response"},
		{name: "a token that is too long", before: sends(token, `{"access_token":"`+strings.Repeat("x", maxToken+1)+`","token_type":"bearer"}`), says: "did not send a valid response"},
		{name: "a response that is too large", before: sends(token, `{"access_token":"a","token_type":"bearer","x":"`+strings.Repeat("x", 2<<20)+`"}`), says: "did not send a valid response"},
		{name: "an error with status 200", before: sends(token, `{"error":"bad_verification_code","access_token":"a","token_type":"bearer"}`), says: "bad_verification_code"},
		{name: "a page with a token", before: responds(token, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>access_token=a`)) }), says: "did not send a valid response"},
		{name: "a token endpoint that never ends", before: responds(token, hangs), slow: true, says: "the account was not linked"},
		{name: "a token endpoint that redirects with the request", before: redirects(http.StatusTemporaryRedirect, token), says: "cannot be reached"},
		{name: "a token endpoint that redirects without the request", before: redirects(http.StatusFound, token), says: "cannot be reached"},
		{name: "bound tokens at a server that does not support them", before: func(p, _ *provider) { p.resource["dpop_bound_access_tokens_required"] = true }, says: "(DPoP)"},
		{name: "bound tokens at a server with another algorithm", before: func(p, _ *provider) {
			challenges(`DPoP resource_metadata="`+p.URL+`/.well-known/oauth-protected-resource/mcp"`)(p, nil)
			p.metadata["dpop_signing_alg_values_supported"] = []string{"RS256"}
		}, says: "(DPoP)"},
		{name: "an unbound token for an app that wants bound ones", before: wantsProofs, says: "did not send a valid response"},
		{name: "a server that keeps asking for another nonce", before: func(p, evil *provider) {
			wantsProofs(p, evil)
			responds(token, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("DPoP-Nonce", time.Now().String())
				refuse(w, "use_dpop_nonce")
			})(p, evil)
		}, says: "use_dpop_nonce"},
	}
}

// putLogin stores a login that is valid except for its key or its expiry.
func putLogin(t *testing.T, r *rig, key, binding string, expires time.Time) {
	t.Helper()
	record, err := json.Marshal(pending{Workspace: core.DefaultWorkspaceID, By: r.caller.User.ID, Owner: r.caller.User.ID, App: "far", AppID: "first", Binding: hashOf(binding)})
	if err == nil {
		err = r.store.PutLogin(t.Context(), key, r.caller.User.ID, record, expires)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Attacks from RFC 9700, RFC 9207, RFC 9728, RFC 9449 and MCP's security page. None of them links an account, and no
// code reaches another server.
func TestNoAttackCanLinkAnAccount(t *testing.T) {
	for _, c := range attacks() {
		t.Run(c.name, func(t *testing.T) {
			p, evil := newProvider(t), newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			if c.before != nil {
				p.change(func(p *provider) { c.before(p, evil) })
			}
			if c.slow {
				r.private.Timeout = time.Second
			}
			start, err := r.begin(t, r.caller, Want{App: "far"}, callback)
			if err == nil {
				response := p.consent(t, start.URL)
				response.Binding = start.Binding
				if c.response != nil {
					c.response(t, r, evil, &response)
				}
				_, _, err = r.Finish(t.Context(), as(r.caller), response)
			}
			switch {
			case err == nil:
				t.Error("accepted")
			case !strings.Contains(err.Error(), c.says):
				t.Errorf("refused for another reason: %v", err)
			case strings.Contains(err.Error(), "secret-in-the-response"):
				t.Errorf("the error shows the server's response: %v", err)
			}
			if all, err := r.store.Accounts(t.Context(), core.DefaultWorkspaceID); err != nil || len(all) > 0 {
				t.Errorf("linked: %v %v", all, err)
			}
			if n := evil.count("/token authorization_code") + evil.count("/token"); n > 0 {
				t.Errorf("the other server got %d token requests", n)
			}
			if n := p.count("/token authorization_code"); n > 2 {
				t.Errorf("%d token requests", n)
			}
		})
	}
}

// Each case poisons the metadata of the app or of the authorization server.
func TestPoisonedMetadataIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *provider)
	}{
		{"the resource of another app", func(p *provider) { p.resource["resource"] = "https://other.example/mcp" }},
		{"a resource under the app", func(p *provider) { p.resource["resource"] = p.URL + "/mcp/more" }},
		{"a resource next to the app", func(p *provider) { p.resource["resource"] = p.URL + "/mc" }},
		{"a resource with a user", func(p *provider) { p.resource["resource"] = strings.Replace(p.URL, "://", "://u@", 1) + "/mcp" }},
		{"no resource", func(p *provider) { p.resource["resource"] = "" }},
		{"no authorization server", func(p *provider) { p.resource["authorization_servers"] = []string{} }},
		{"an authorization server that is not a URL", func(p *provider) { p.resource["authorization_servers"] = []string{"javascript:alert(1)"} }},
		{"an authorization server with a password", func(p *provider) { p.resource["authorization_servers"] = []string{"https://a:b@idp.example"} }},
		{"another issuer", func(p *provider) { p.metadata["issuer"] = "https://other.example" }},
		{"no issuer", func(p *provider) { p.metadata["issuer"] = "" }},
		{"an issuer with another path", func(p *provider) { p.metadata["issuer"] = p.URL + "/tenant" }},
		{"no PKCE", func(p *provider) { delete(p.metadata, "x"); p.metadata["code_challenge_methods_supported"] = nil }},
		{"plain PKCE", func(p *provider) { p.metadata["code_challenge_methods_supported"] = []string{"plain"} }},
		{"an authorization endpoint that is a script", func(p *provider) { p.metadata["authorization_endpoint"] = "javascript:alert(1)" }},
		{"an authorization endpoint that adds to the policy of the page", func(p *provider) { p.metadata["authorization_endpoint"] = "https://idp.example;sandbox/" }},
		{"an authorization endpoint that starts another policy", func(p *provider) { p.metadata["authorization_endpoint"] = "https://idp.example,sandbox/" }},
		{"an authorization endpoint that is any server", func(p *provider) { p.metadata["authorization_endpoint"] = "https://*/authorize" }},
		{"an authorization endpoint that is data", func(p *provider) { p.metadata["authorization_endpoint"] = "data:text/html,x" }},
		{"an authorization endpoint with a fragment", func(p *provider) { p.metadata["authorization_endpoint"] = p.URL + "/authorize#x" }},
		{"no authorization endpoint", func(p *provider) { p.metadata["authorization_endpoint"] = "" }},
		{"no token endpoint", func(p *provider) { p.metadata["token_endpoint"] = "" }},
		{"a token endpoint that is a file", func(p *provider) { p.metadata["token_endpoint"] = "file:///etc/passwd" }},
		{"a registration endpoint that is a script", func(p *provider) { p.metadata["registration_endpoint"] = "javascript:1" }},
		{"a revocation endpoint that is a socket", func(p *provider) { p.metadata["revocation_endpoint"] = "unix:///run/x" }},
		{"metadata that is too large", func(p *provider) { p.metadata["x"] = strings.Repeat("x", maxDocument) }},
		{"metadata of another type", func(p *provider) { p.metadata["code_challenge_methods_supported"] = "S256" }},
		{"metadata that redirects to http of another host", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/.well-known/oauth-authorization-server" {
					return false
				}
				http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
				return true
			}
		}},
		{"metadata that redirects forever", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server") {
					return false
				}
				http.Redirect(w, r, r.URL.Path+"?x", http.StatusFound)
				return true
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			p.change(c.change)
			if start, err := r.begin(t, r.caller, Want{App: "far"}, callback); err == nil {
				t.Errorf("the browser is sent to %s", start.URL)
			}
		})
	}
}

func TestAPublicAppCannotReachPrivateAddresses(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	for _, issuer := range []string{p.URL, strings.Replace(p.URL, "http://", "https://", 1), "https://169.254.169.254", "https://10.0.0.1", "https://[::1]", "http://idp.example"} {
		if _, err := r.describe(t.Context(), issuer, false); err == nil {
			t.Errorf("%s was read for a public app", issuer)
		}
	}
}

// connTo is a connection that claims to lead to an address.
type connTo struct {
	net.Conn
	ip net.IP
}

func (c connTo) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip, Port: 443} }

// The owner of an app decides which addresses its name resolves to. A private address may be one of several, or the
// only one for a moment.
func TestAnAppAtAPublicAddressCannotReachPrivateOnesThroughItsName(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	app := core.Remote{URL: strings.Replace(p.URL, "127.0.0.1", "localhost", 1) + "/mcp", AllowPrivate: true}
	p.change(func(p *provider) { p.resource["resource"] = app.URL })
	if _, err := r.discover(t.Context(), app); err != nil {
		t.Fatalf("an app at a private address: %v", err)
	}
	r.private.CloseIdleConnections()
	dialer := &net.Dialer{}
	r.private.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		return connTo{conn, net.IPv4(203, 0, 113, 5)}, err
	}}
	if s, err := r.discover(t.Context(), app); err == nil {
		t.Errorf("it may use the authorization server at %s", s.Issuer)
	}
	if r.Discover(t.Context(), app, remote.Challenge{Metadata: p.URL + "/.well-known/oauth-protected-resource/mcp"}) {
		t.Error("its authorization server is found by the address of its metadata")
	}
}

func TestHostileRegistrationsAreRefused(t *testing.T) {
	for name, response := range map[string]func(w http.ResponseWriter){
		"a refusal": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_redirect_uri"}`))
		},
		"a response without a client": func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); _, _ = w.Write([]byte(`{}`)) },
		"a response that is not JSON": func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); _, _ = w.Write([]byte(`<html>`)) },
		"a long client": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"client_id":"` + strings.Repeat("x", 5000) + `"}`))
		},
		"a redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://other.example/register")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a failed server": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			p.change(func(p *provider) {
				p.fail = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/register" {
						response(w)
						return true
					}
					return false
				}
			})
			if _, err := r.begin(t, r.caller, Want{App: "far"}, callback); err == nil {
				t.Error("a client was accepted")
			}
		})
	}
}

// The app names another authorization server, which sends the browser on to the one that the client is registered
// with.
func TestAConfiguredClientIsOnlyUsedAtItsAuthorizationServer(t *testing.T) {
	for name, named := range map[string]bool{"the client of the first login": false, "the client of the configuration": true} {
		t.Run(name, func(t *testing.T) {
			honest, evil := newProvider(t), newProvider(t)
			auth := core.RemoteAuth{Type: core.AuthUser, ClientID: "configured", ClientSecret: "operators-secret"}
			if named {
				auth.Issuer = honest.URL + "/"
			}
			r := newRig(t, honest, auth)
			if !named {
				r.link(t, honest, r.caller, "main")
			}
			honest.change(func(p *provider) { p.resource["authorization_servers"] = []string{evil.URL} })
			evil.change(func(p *provider) { p.metadata["authorization_endpoint"] = honest.URL + "/authorize" })
			_, err := r.begin(t, r.person(t, "bob"), Want{App: "far"}, callback)
			if core.CodeOf(err) != core.CodeForbidden || !strings.Contains(err.Error(), evil.URL) || !strings.Contains(err.Error(), honest.URL) || !strings.Contains(err.Error(), "transport.auth.issuer") {
				t.Errorf("a login at the other server: %v", err)
			}
			honest.change(func(p *provider) { delete(p.resource, "authorization_servers") })
			r.link(t, honest, r.caller, "second")
			if n := evil.count("/token authorization_code"); n > 0 {
				t.Errorf("the other server got %d codes", n)
			}
		})
	}
}
