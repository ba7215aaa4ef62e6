package authtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Provider is a small OpenID provider on loopback. It has discovery, a key set that changes, an authorize
// endpoint that needs no login, a token endpoint that checks PKCE, UserInfo, introspection, and faults that
// can be switched on. Its names are random. It is a test fixture: it trusts every caller.
type Provider struct {
	Setup        Setup  // how to configure the adapter
	Audience     string // the audience of valid tokens
	Organization string // the only organization to admit in the setup OneOrganization
	ClientID     string
	ClientSecret string // used in the setup Introspecting

	keys    *Keys
	server  *http.Server
	address string
	path    string // of the issuer: many providers have several issuers on one host
	served  sync.WaitGroup
	life    context.Context
	end     context.CancelFunc

	reached chan struct{} // receives when a request stalls
	mu      sync.Mutex
	state
}

// state is the part of a Provider that changes. Its lists are appended to and replaced, but their items stay the same,
// so a copy can be read without the Provider's mutex. Its maps cannot.
type state struct {
	accounts
	ever      []*signer // every key that it has had
	published []*signer // the current key set
	odd       bool      // the key set also contains unusable keys
	caching   string    // its Cache-Control header
	fault     *fault
	stalled   chan struct{} // closed to release stalled requests
	asked     []time.Time   // when keys were requested
	read      []reading     // key sets that the regular handler sent
	documents int           // number of requests for metadata
	document  time.Time     // when the regular handler last sent it
	logins    map[string]*login
	inactive  string // selects the introspection response; "" for active
	strayed   int    // number of requests that followed a redirect to another host
	given     secrets
}

// now returns a copy of the state.
func (p *Provider) now() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// set changes the state, or reads its maps.
func (p *Provider) set(change func(s *state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.state)
}

// reading is a key set that was sent.
type reading struct {
	at   time.Time
	keys []*signer
}

// Setup is a way to configure an adapter.
type Setup int

// The ways to configure an adapter.
const (
	OneOrganization Setup = iota // only tokens of Organization are valid
	AnyOrganization              // tokens of any organization are valid
	WithRoles                    // like AnyOrganization, and the role is in the claim RoleClaim
	Introspecting                // like AnyOrganization, and the adapter asks the provider about each token
)

// The claims of a Provider's tokens that settings name, and the redirect URI for logins. Nothing listens on that
// address: the kit reads the redirect itself.
const (
	RoleClaim         = "role"
	organizationClaim = "org_id"
	RedirectURI       = "http://127.0.0.1:1/v1/auth/callback"
)

// NewProvider starts a provider on a free port on 127.0.0.1.
func NewProvider(keys *Keys) (*Provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, fmt.Errorf("start the kit's provider: %w", err)
	}
	name := strings.ToLower(rand.Text()[:8])
	p := &Provider{
		Audience: "https://" + name + ".example/mcp", Organization: "org_" + name, ClientID: "client_" + rand.Text()[:10], ClientSecret: "secret_" + rand.Text(),
		keys: keys, address: listener.Addr().String(), path: "/realms/" + name, reached: make(chan struct{}, 100), state: state{accounts: newAccounts(), logins: map[string]*login{}, stalled: make(chan struct{})},
	}
	p.Add()
	p.Add()                 // so that a token without a key id is ambiguous
	p.ever = append(p.ever, // a key of another type may have the same id (RFC 7517 section 4.5)
		&signer{"enc-" + name, "enc", keys.encryption}, &signer{p.signer().kid, "sig", keys.curve}, &signer{"ed-" + name, "sig", keys.edwards})
	p.published = slices.Clone(p.ever)
	p.life, p.end = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	p.served.Go(func() { _ = p.server.Serve(listener) })
	return p, nil
}

// Close stops the provider.
func (p *Provider) Close() {
	p.end()
	_ = p.server.Close()
	p.served.Wait()
}

// Issuer returns the provider's issuer URL.
func (p *Provider) Issuer() string { return "http://" + p.address + p.path }

// Add publishes another signing key in addition to the existing ones, and signs with it from now on.
func (p *Provider) Add() *signer {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(rsaKeys(p.ever))
	added := &signer{"key-" + rand.Text()[:6], []string{"sig", ""}[n%2], p.keys.signing[n%len(p.keys.signing)]}
	p.ever, p.published = append(p.ever, added), append(p.published, added)
	return added
}

// publish adds a key to the key set, or removes it.
func (p *Provider) publish(key *signer, add bool) {
	p.set(func(s *state) {
		if s.published = without(s.published, key); add {
			s.published = append(s.published, key)
		}
	})
}

// Rotate publishes another signing key and then removes the current one from the key set.
func (p *Provider) Rotate() {
	old := p.signer()
	p.Add()
	p.publish(old, false)
}

// rsaKeys returns the keys for RS256.
func rsaKeys(all []*signer) []*signer {
	return slices.DeleteFunc(slices.Clone(all), func(s *signer) bool { return s.algorithm() != "RS256" || !s.signs() })
}

// signer returns the key that the provider signs with: the newest RSA key.
func (p *Provider) signer() *signer { return last(rsaKeys(p.now().ever)) }

// oldest returns the first published key for RS256.
func (p *Provider) oldest() *signer { return rsaKeys(p.now().published)[0] }

// signed returns the current or former key that made a signature, or nil.
func (p *Provider) signed(algorithm string, j *jws) *signer {
	var other *signer
	for _, s := range slices.Backward(p.now().ever) { // the same key may have had another id before
		switch {
		case !s.verifies(algorithm, j):
		case s.kid == j.header["kid"]:
			return s
		case other == nil:
			other = s
		}
	}
	return other
}

// Claims returns the claims of a valid access token: for alice, with the audience Audience, valid for ten minutes.
func (p *Provider) Claims() map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": p.Issuer(), "sub": "user_alice", "aud": []string{p.Audience}, organizationClaim: p.Organization,
		"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "scope": "openid profile",
		"name": "Alice", "email": "alice@example.com", "email_verified": true,
	}
}

// Token signs claims with the provider's key. Each of changes replaces claims; a nil value removes one.
func (p *Provider) Token(changes ...map[string]any) string {
	return p.tokenOf(p.signer(), changed(p.Claims(), changes...))
}

func (p *Provider) tokenOf(s *signer, claims any) string {
	head := map[string]any{"alg": s.algorithm(), "typ": "JWT", "kid": s.kid}
	return compact(head, claims, func(in []byte) []byte { return s.sign(s.algorithm(), in) })
}

// setFault switches a fault on. nil switches it off and releases stalled requests.
func (p *Provider) setFault(f *fault) {
	p.set(func(s *state) {
		if s.fault = f; f == nil {
			close(s.stalled)
			s.stalled = make(chan struct{})
		}
	})
}

// secrets are the secrets that an adapter was given.
type secrets []kit.Secret

// add adds a secret. If it is a JWT, the claims and the signature are also secrets; the header is not.
func (s *secrets) add(what, text string) {
	*s = append(*s, kit.Secret{What: what, Text: text})
	if parts := strings.Split(text, "."); len(parts) == 3 {
		*s = append(*s, kit.Secret{What: "the claims of " + what, Text: parts[1]}, kit.Secret{What: "the signature of " + what, Text: parts[2]})
	}
}
