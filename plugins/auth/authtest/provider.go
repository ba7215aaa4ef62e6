package authtest

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Provider is a small OpenID provider on loopback: discovery, a key set that rotates, an
// authorize endpoint that asks nobody, a token endpoint that checks PKCE, and faults to switch on.
// It is a fixture: it trusts whoever asks.
type Provider struct {
	// Setup is how the adapter of the check is to be configured.
	Setup Setup

	keys    *Keys
	server  *http.Server
	address string
	asked   atomic.Int64 // for keys
	read    atomic.Int64 // documents
	served  sync.WaitGroup
	life    context.Context
	end     context.CancelFunc

	mu           sync.Mutex
	fault        Fault
	rotated      bool
	added        bool
	logins       map[string]login                // by code
	forgeIDToken func(claims map[string]any) any // nil for honest id tokens
	strayed      atomic.Int64                    // questions of the token endpoint under another name
	sessions     sessionState
	given        secrets // the tokens of all logins
}

// Fault is something a Provider does wrong.
type Fault int

// The faults of a Provider. They hold for every endpoint unless said otherwise.
const (
	NoFault           Fault = iota
	Away                    // connections are cut without an answer
	Broken                  // answers are 500
	Hanging                 // answers never come
	Huge                    // the key set never ends
	Junk                    // answers are no JSON
	OtherIssuer             // the documents are about another issuer
	Elsewhere               // the key set redirects to another host, which has the keys
	HugeDocument            // the metadata documents never end
	Slow                    // every answer takes a second
	OddKeys                 // the key set also has keys that nobody can use
	ForAnotherClient        // id tokens are for another client
	OldIDToken              // id tokens have expired
	ForgedIDToken           // id tokens are signed by somebody else
	NoIDToken               // there is no id token
	OtherOrgIDToken         // id tokens are of another organization
	NamelessIDToken         // name and e-mail address are at the UserInfo endpoint alone
	OtherUserInfo           // and there they are of another subject
	NearlyThatIssuer        // the documents are about the issuer with a slash more
	LargeDocument           // the metadata documents have 3 MiB
	LargeKeySet             // the key set has 3 MiB
	DocumentElsewhere       // the metadata documents redirect to another host, which has them
	TokenElsewhere          // the token endpoint redirects to another host
	OtherAccessToken        // access tokens of logins are somebody else's than their id tokens
)

// NewProvider starts a provider on a free port of 127.0.0.1.
func NewProvider(keys *Keys) (*Provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it answers at once
	if err != nil {
		return nil, fmt.Errorf("start the kit's provider: %w", err)
	}
	p := &Provider{keys: keys, address: listener.Addr().String(), logins: map[string]login{}, sessions: newSessionState()}
	p.life, p.end = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	p.served.Go(func() { _ = p.server.Serve(listener) })
	return p, nil
}

// Close ends the provider.
func (p *Provider) Close() {
	p.end()
	_ = p.server.Close()
	p.served.Wait()
}

// Issuer is the provider's issuer URL.
func (p *Provider) Issuer() string { return "http://" + p.address }

// SetFault switches a fault on, or off with NoFault.
func (p *Provider) SetFault(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// Rotate replaces the signing key: tokens of the old one are no longer good.
func (p *Provider) Rotate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rotated = true
}

// Add publishes a second signing key beside the first one.
func (p *Provider) Add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.added = true
}

// SecondToken is Token, signed with the second key.
func (p *Provider) SecondToken(changes ...map[string]any) string {
	return compact(header("second"), p.claims(changes), rs256(p.keys.second))
}

// TokenWith is Token, signed with the provider's key of another algorithm: ES256 or EdDSA.
func (p *Provider) TokenWith(algorithm string, changes ...map[string]any) string {
	head := header(algorithm)
	head["alg"] = algorithm
	if algorithm == "ES256" {
		return compact(head, p.claims(changes), es256(p.keys.ownCurve))
	}
	return compact(head, p.claims(changes), func(in []byte) []byte { return ed25519.Sign(p.keys.ownEdwards, in) })
}

// KeysAsked is how often the key set was asked for.
func (p *Provider) KeysAsked() int { return int(p.asked.Load()) }

// DocumentsRead is how often one of its metadata documents was asked for.
func (p *Provider) DocumentsRead() int { return int(p.read.Load()) }

func (p *Provider) key() (*rsa.PrivateKey, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rotated {
		return p.keys.second, "second"
	}
	return p.keys.first, "first"
}

// Claims are those of a good access token: of alice, for Audience, good for ten minutes.
func (p *Provider) Claims() map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": p.Issuer(), "sub": "user_alice", "aud": []string{Audience}, "org_id": Organization,
		"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "scope": "openid profile",
		"name": "Alice", "email": "alice@example.com", "email_verified": true,
	}
}

// Token signs claims with the provider's key. Each of changes replaces claims; nil takes one away.
func (p *Provider) Token(changes ...map[string]any) string {
	key, kid := p.key()
	return compact(header(kid), p.claims(changes), rs256(key))
}

func (p *Provider) claims(changes []map[string]any) map[string]any {
	claims := p.Claims()
	for _, change := range changes {
		maps.Copy(claims, change)
	}
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

func header(kid string) map[string]any {
	return map[string]any{"alg": "RS256", "typ": "JWT", "kid": kid}
}

// good is a good token of the provider and whose it is.
func (p *Provider) good() Samples {
	claims := p.Claims()
	return Samples{
		Good:     p.Token(claims),
		Audience: Audience,
		Identity: auth.Identity{
			Issuer: p.Issuer(), Subject: "user_alice", Email: "alice@example.com", DisplayName: "Alice",
			OrganizationID: Organization, ExpiresAt: time.Unix(claims["exp"].(int64), 0),
		},
	}
}
