package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// provider is a remote app at /mcp and its authorization server, with refresh token rotation: reusing a refresh token ends
// the grant (RFC 9700).
type provider struct {
	*httptest.Server

	mu       sync.Mutex
	metadata map[string]any // members that override the authorization server's metadata
	resource map[string]any // the app's resource metadata
	codes    map[string]url.Values
	current  map[string]string // valid refresh tokens, by grant
	retired  map[string]string // grants by used refresh token
	revoked  []string
	requests []string                                          // path and grant type
	fail     func(w http.ResponseWriter, r *http.Request) bool // if it returns true, it has responded instead of the server
	silent   bool                                              // the app's challenge names no scopes
	bound    bool                                              // tokens have the type DPoP
	life     int                                               // lifetime of access tokens in seconds; 0 leaves it out
	number   int
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := idleProvider("")
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// idleProvider returns a provider that does not listen at its address.
func idleProvider(address string) *provider {
	return &provider{
		Server: &httptest.Server{URL: address}, metadata: map[string]any{}, resource: map[string]any{}, codes: map[string]url.Values{},
		current: map[string]string{}, retired: map[string]string{}, life: 3600,
	}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, strings.TrimSpace(r.URL.Path+" "+r.PostForm.Get("grant_type")))
	if p.fail != nil && p.fail(w, r) {
		return
	}
	switch r.URL.Path {
	case "/mcp":
		challenge := `Bearer resource_metadata="` + p.URL + `/.well-known/oauth-protected-resource/mcp"`
		if !p.silent {
			challenge += `, scope="read write"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case "/.well-known/oauth-protected-resource/mcp":
		p.document(w, map[string]any{"resource": p.URL + "/mcp", "authorization_servers": []string{p.URL}}, p.resource)
	case "/.well-known/oauth-authorization-server":
		p.document(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "registration_endpoint": p.URL + "/register",
			"revocation_endpoint": p.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
			"authorization_response_iss_parameter_supported": true,
		}, p.metadata)
	case "/register":
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"client_id":"registered","token_endpoint_auth_method":"none"}`)
	case "/token":
		p.token(w, r.PostForm)
	case "/revoke":
		p.revoked = append(p.revoked, r.PostForm.Get("token"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p *provider) document(w http.ResponseWriter, usual, changed map[string]any) {
	maps.Copy(usual, changed)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(usual)
}

func (p *provider) token(w http.ResponseWriter, form url.Values) {
	refuse := func(code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":%q,"error_description":"secret-in-the-response"}`, code)
	}
	var grant string
	switch form.Get("grant_type") {
	case "authorization_code":
		asked, ok := p.codes[form.Get("code")]
		delete(p.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != form.Get("redirect_uri") ||
			asked.Get("resource") != form.Get("resource") || asked.Get("client_id") != form.Get("client_id") {
			refuse("invalid_grant")
			return
		}
		p.number++
		grant = fmt.Sprintf("grant%d", p.number)
	case "refresh_token":
		used := form.Get("refresh_token")
		if of, again := p.retired[used]; again {
			delete(p.current, of) // reuse: the whole grant ends
		}
		for of, token := range p.current {
			if token == used {
				grant = of
			}
		}
		if grant == "" || form.Get("resource") == "" {
			refuse("invalid_grant")
			return
		}
		p.retired[used] = grant
	default:
		refuse("unsupported_grant_type")
		return
	}
	p.number++
	p.current[grant] = fmt.Sprintf("refresh-%s-%d", grant, p.number)
	response := map[string]any{"access_token": fmt.Sprintf("access-%s-%d", grant, p.number), "token_type": "bearer", "refresh_token": p.current[grant]}
	if p.bound {
		response["token_type"] = "DPoP"
	}
	if p.life > 0 {
		response["expires_in"] = p.life
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(response)
}

// consent returns the response that a browser forwards from the authorization server.
func (p *provider) consent(t *testing.T, address string) Response {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	code := fmt.Sprintf("code%d", p.number)
	p.codes[code] = q
	response := Response{State: q.Get("state"), Code: code, Issuer: p.URL}
	if back, err := url.Parse(q.Get("redirect_uri")); err == nil {
		response.Mark = back.Query().Get(MarkParameter)
	}
	return response
}

// count returns how many requests of a kind the provider has received.
func (p *provider) count(kind string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r == kind {
			n++
		}
	}
	return n
}

// change changes the provider while holding its lock, so that no request is served meanwhile.
func (p *provider) change(do func(p *provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(p)
}

// rig is a Manager with a real store.
type rig struct {
	*Manager
	store  *store.Store
	caller core.Caller
	events chan core.Event
	unused bool // no app uses accounts

	mu       sync.Mutex
	unlinked []string
	linked   []core.Account
}

func (r *rig) AuthOf(workspace, app string) (core.RemoteAuth, error) {
	in, err := r.store.Installation(context.Background(), workspace, app)
	if err != nil {
		return core.RemoteAuth{}, err
	}
	return in.Remote.Auth, nil
}

func (r *rig) ExchangeApps(string) []string { return []string{"far"} }

func (r *rig) OfferOf(shared *core.Offer, _ []core.Account) *core.Offer { return shared }

func (r *rig) ListsTool(core.Account, string) bool { return true }

func (r *rig) UsesAccounts(string) bool { return !r.unused }

func (r *rig) AccountLinked(a core.Account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.linked = append(r.linked, a)
}

func (r *rig) AccountUnlinked(account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unlinked = append(r.unlinked, account)
}

func (r *rig) DefaultAccountChanged(string) {}

func (r *rig) Publish(e core.Event) {
	select {
	case r.events <- e:
	default:
	}
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	keys, err := seal.Parse(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "ropewalk.db"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newRig returns a Manager with a provider's app under the name far, and a person who may use the app.
func newRig(t *testing.T, p *provider, auth core.RemoteAuth) *rig {
	t.Helper()
	return rigOn(t, newStore(t), p, auth)
}

func rigOn(t *testing.T, s *store.Store, p *provider, auth core.RemoteAuth) *rig {
	t.Helper()
	r := &rig{store: s, events: make(chan core.Event, 100)}
	r.Manager = New(Options{Store: s, Events: r, Logger: hclog.NewNullLogger(), URL: func() string { return "http://127.0.0.1:1" }})
	r.SetApps(r)
	err := s.AddInstallation(t.Context(), core.Installation{
		ID: "first", Workspace: core.DefaultWorkspaceID, Name: "far", BundleName: p.URL + "/mcp", InstalledAt: time.Now(),
		Remote: &core.Remote{URL: p.URL + "/mcp", Type: "streamable-http", Auth: auth, AllowPrivate: true},
	})
	if err != nil && core.CodeOf(err) != core.CodeAlreadyInstalled {
		t.Fatal(err)
	}
	r.caller = r.person(t, "alice")
	return r
}

func (r *rig) person(t *testing.T, name string) core.Caller {
	t.Helper()
	id := core.Identity{Issuer: "https://idp.example", Subject: name, User: core.User{Email: name + "@example.com", DisplayName: name}}
	user, err := r.store.Provision(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.PutMember(t.Context(), core.DefaultWorkspaceID, user.ID, core.RoleMember); err != nil {
		t.Fatal(err)
	}
	id.User = user
	return core.Caller{Identity: id, Workspace: core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember}}
}

const callback = "http://127.0.0.1:1" + CallbackPath

// begin begins to link an account for a person who agrees to what the page shows.
func (r *rig) begin(t *testing.T, c core.Caller, w Want, redirectURI string) (Start, error) {
	t.Helper()
	consent, err := r.Prepare(t.Context(), c, w)
	if err != nil {
		return Start{}, err
	}
	w.Agreed = consent.Digest()
	return r.Begin(t.Context(), c, w, redirectURI)
}

// consented returns the authorization server's response after the caller has begun to link an account and agreed.
func (r *rig) consented(t *testing.T, p *provider) Response {
	t.Helper()
	start, err := r.begin(t, r.caller, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	response := p.consent(t, start.URL)
	response.Binding = start.Binding
	return response
}

// as returns a function for Finish that finds the caller's rights unchanged.
func as(c core.Caller) func(context.Context, string) (core.Caller, error) {
	return func(context.Context, string) (core.Caller, error) { return c, nil }
}

// link links an account in the same way as a browser.
func (r *rig) link(t *testing.T, p *provider, c core.Caller, name string) core.Account {
	t.Helper()
	start, err := r.begin(t, c, Want{App: "far", Name: name}, callback)
	if err != nil {
		t.Fatal(err)
	}
	response := p.consent(t, start.URL)
	response.Binding = start.Binding
	a, again, err := r.Finish(t.Context(), as(c), response)
	if err == nil && again.URL != "" {
		response = p.consent(t, again.URL)
		response.Binding = again.Binding
		a, _, err = r.Finish(t.Context(), as(c), response)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// expire makes the access token of an account expire.
func (r *rig) expire(t *testing.T, id string) {
	t.Helper()
	if _, err := r.store.RenewAccount(t.Context(), id, func(_ context.Context, a *core.Account) (bool, error) {
		a.ExpiresAt = time.Now().Add(-time.Second)
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	r.Changed(id)
}

func (r *rig) eventNames() (names []string) {
	for {
		select {
		case e := <-r.events:
			names = append(names, e.Name)
		default:
			return slices.Compact(names)
		}
	}
}
