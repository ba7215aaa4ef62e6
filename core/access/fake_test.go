package access

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(databases.Around(m)) }

// databases is the PostgreSQL server that all tests here share if they run on PostgreSQL (testenv.Store).
var databases testenv.Databases

// provider is an in-memory auth adapter. A token is valid if it is in tokens.
type provider struct {
	issuer string
	login  bool
	states bool // responses contain the issuer (RFC 9207)

	mu     sync.Mutex
	tokens map[string]auth.Identity
	down   bool
	panics bool
	block  chan struct{} // when set, Verify waits for it
	asked  []auth.VerifyRequest
	calls  atomic.Int64
	starts []auth.AuthorizeRequest

	exchanges atomic.Int64
}

func newProvider(issuer string, subjects ...string) *provider {
	p := &provider{issuer: issuer, login: true, tokens: map[string]auth.Identity{}}
	for _, s := range subjects {
		p.tokens["token-of-"+s] = p.identity(s)
	}
	return p
}

func (p *provider) identity(subject string) auth.Identity {
	return auth.Identity{Issuer: p.issuer, Subject: subject, Email: subject + "@x.y", DisplayName: subject, ExpiresAt: time.Now().Add(time.Hour)}
}

func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *provider) Describe(context.Context) (auth.Description, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return auth.Description{}, plugins.ErrUnavailable
	}
	return auth.Description{Issuer: p.issuer, AuthorizationServers: []string{p.issuer}, Login: p.login}, nil
}

func (p *provider) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	p.calls.Add(1)
	p.mu.Lock()
	block := p.block
	p.asked = append(p.asked, req)
	p.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return auth.Identity{}, fmt.Errorf("waiting: %w", plugins.ErrUnavailable)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch id, valid := p.tokens[req.Token]; {
	case p.panics:
		panic("a bug")
	case p.down:
		return auth.Identity{}, fmt.Errorf("connecting: %w", plugins.ErrUnavailable)
	case valid:
		return id, nil
	}
	return auth.Identity{}, fmt.Errorf("unknown token: %w", plugins.ErrUnauthenticated)
}

func (p *provider) Metadata(context.Context) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, plugins.ErrUnavailable
	}
	if p.states {
		return json.RawMessage(`{"issuer":"` + p.issuer + `","authorization_response_iss_parameter_supported":true}`), nil
	}
	return json.RawMessage(`{"issuer":"` + p.issuer + `"}`), nil
}

func (p *provider) AuthorizeURL(_ context.Context, req auth.AuthorizeRequest) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return "", plugins.ErrUnavailable
	}
	p.starts = append(p.starts, req)
	return p.issuer + "/authorize?state=" + req.State, nil
}

func (p *provider) Exchange(_ context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	p.exchanges.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	subject, ok := strings.CutPrefix(req.Code, "code-of-")
	if p.down {
		return auth.Identity{}, plugins.ErrUnavailable
	}
	if !ok || len(p.starts) == 0 {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	start := p.starts[len(p.starts)-1]
	if start.Nonce != req.Nonce || start.RedirectURI != req.RedirectURI || start.CodeChallenge != challengeOf(req.CodeVerifier) {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return p.identity(subject), nil
}

// counted counts the calls that reach the database.
type counted struct {
	*store.Store
	workspaces, provisions atomic.Int64
	fail                   atomic.Bool
}

func (c *counted) Workspaces(ctx context.Context, u core.User) ([]core.Workspace, error) {
	c.workspaces.Add(1)
	if c.fail.Load() {
		return nil, fmt.Errorf("the disk is gone")
	}
	return c.Store.Workspaces(ctx, u)
}

func (c *counted) Provision(ctx context.Context, id core.Identity, sameAs []string) (core.User, error) {
	c.provisions.Add(1)
	if c.fail.Load() {
		return core.User{}, fmt.Errorf("the disk is gone")
	}
	return c.Store.Provision(ctx, id, sameAs)
}

func (c *counted) Cookie(ctx context.Context, hash string) (core.Cookie, error) {
	if c.fail.Load() {
		return core.Cookie{}, fmt.Errorf("the disk is gone")
	}
	return c.Store.Cookie(ctx, hash)
}

func openState(t *testing.T) *counted {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "ropewalk.db"), URL: core.Secret(databases.StateURL(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &counted{Store: s}
}

const testKey = "a-key-of-more-than-sixteen-characters"

// newAccess returns an Access with its own state. A nil *provider means no adapter.
func newAccess(t *testing.T, key core.Secret, p *provider) (*Access, *counted) {
	t.Helper()
	state := openState(t)
	o := Options{APIKey: key, Audiences: []string{"https://base"}, Users: state, Cookies: state, Keys: state, Revocations: state}
	if p != nil {
		o.Providers = only(p)
	}
	return New(o), state
}

// outcome returns a result as one word: the subject or the error's code.
func outcome(id core.Identity, err error) string {
	if err != nil {
		return string(core.CodeOf(err))
	}
	return id.Subject
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// only returns the configuration of a single provider, or none if it is nil.
func only(p *provider) []Provider {
	if p == nil {
		return nil
	}
	return []Provider{{Name: "idp", Adapter: p}}
}

// everyProvider implements people.Providers as if every provider were configured.
type everyProvider struct{}

func (everyProvider) Forgotten(context.Context, []string) bool { return false }
