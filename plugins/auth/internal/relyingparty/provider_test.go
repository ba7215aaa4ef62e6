package relyingparty

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer = "https://id.example.com"

// provider is an OpenID provider in memory, so that the clock of a synctest bubble does not advance during a request.
type provider struct {
	t *testing.T

	mu    sync.Mutex
	down  bool
	pages map[string]any // by path
	asked map[string]int
	keys  map[string]*rsa.PrivateKey
}

func newProvider(t *testing.T) *provider {
	p := &provider{t: t, pages: map[string]any{}, asked: map[string]int{}, keys: map[string]*rsa.PrivateKey{}}
	p.pages["/.well-known/openid-configuration"] = map[string]any{"issuer": issuer, "jwks_uri": issuer + "/jwks"}
	p.publish("first")
	return p
}

// publish makes these the keys in the provider's key set.
func (p *provider) publish(kids ...string) {
	set := jwk.NewSet()
	for _, kid := range kids {
		if p.keys[kid] == nil {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				p.t.Fatal(err)
			}
			p.keys[kid] = key
		}
		public, err := jwk.FromRaw(&p.keys[kid].PublicKey)
		if err != nil {
			p.t.Fatal(err)
		}
		_ = public.Set(jwk.KeyIDKey, kid)
		_ = set.AddKey(public)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages["/jwks"] = set
}

func (p *provider) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

func (p *provider) count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// RoundTrip handles every request, whatever its host.
func (p *provider) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[req.URL.Path]++
	if p.down {
		return nil, errors.New("connection refused")
	}
	page, ok := p.pages[req.URL.Path]
	if !ok {
		page = http.HandlerFunc(http.NotFound)
	}
	return answered(page, req), nil
}

// party returns a Party that trusts p.
func (p *provider) party(change ...func(*Options)) *Party {
	o := Options{Issuer: issuer, OrganizationClaim: "org_id", Log: hclog.NewNullLogger()}
	for _, c := range change {
		c(&o)
	}
	party := New(o)
	party.client.Transport = p
	p.t.Cleanup(party.Close)
	return party
}

// token returns a token signed with the named key, published or not. Each of changes replaces claims; a nil value
// removes one.
func (p *provider) token(kid string, changes ...map[string]any) string {
	p.t.Helper()
	return p.signed(kid, "", changes...)
}

// typed returns a token with this type, signed with the first key.
func (p *provider) typed(t *testing.T, typ string, changes ...map[string]any) string {
	t.Helper()
	return p.signed("first", typ, changes...)
}

func (p *provider) signed(kid, typ string, changes ...map[string]any) string {
	p.t.Helper()
	if p.keys[kid] == nil {
		p.keys[kid] = p.keys["first"]
	}
	claims := map[string]any{"iss": issuer, "sub": "alice", "aud": "us", "exp": time.Now().Add(48 * time.Hour).Unix()}
	for _, change := range changes {
		maps.Copy(claims, change)
	}
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	headers := jws.NewHeaders()
	if kid != "" {
		_ = headers.Set(jws.KeyIDKey, kid)
	}
	if typ != "" {
		_ = headers.Set(jws.TypeKey, typ)
	}
	signed, err := jws.Sign(payload, jws.WithKey(jwa.RS256, p.keys[kid], jws.WithProtectedHeaders(headers)))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(signed)
}
