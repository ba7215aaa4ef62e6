package authtest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func TestMain(m *testing.M) {
	if err := testkit.Parallel("16"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// right is an adapter that honours the contract, with hooks for small changes. A nil hook changes nothing.
type right struct {
	*oidc.Adapter
	p   *authtest.Provider
	out *kit.Output // receives its log lines and what it prints

	verify   func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error)
	describe func(d auth.Description) auth.Description
	metadata func(ctx context.Context, raw json.RawMessage, err error) (json.RawMessage, error)
	url      func(req auth.AuthorizeRequest) auth.AuthorizeRequest
	address  func(url string) string
	exchange func(ctx context.Context, req auth.ExchangeRequest, honest exchanger) (auth.Identity, error)
	check    func(ctx context.Context, req auth.SessionCheck, honest checker) (auth.Identity, error)
	logout   func(ctx context.Context, token string, l auth.Logout, err error) (auth.Logout, error)
	watch    func(ctx context.Context, revoked func(auth.Revocation) error) error
	binds    func(req auth.VerifyRequest, cnf map[string]any) error
}

type (
	verifier  = func(context.Context, auth.VerifyRequest) (auth.Identity, error)
	exchanger = func(context.Context, auth.ExchangeRequest) (auth.Identity, error)
	checker   = func(context.Context, auth.SessionCheck) (auth.Identity, error)
)

func (r *right) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	honest := r.Adapter.Verify
	if r.binds != nil {
		honest = r.bound
	}
	if r.verify == nil {
		return honest(ctx, req)
	}
	return r.verify(ctx, req, honest)
}

// bound verifies a token that is bound to a key. If the request proves possession of the key, it verifies the same
// claims without the binding, signed again by the kit's provider.
func (r *right) bound(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := r.Adapter.Verify(ctx, req)
	if err == nil || !strings.Contains(err.Error(), "(cnf)") {
		return id, err
	}
	claims := claimsOf(req.Token)
	cnf, _ := claims["cnf"].(map[string]any)
	if err := r.binds(req, cnf); err != nil {
		return auth.Identity{}, fmt.Errorf("%w: %w", plugins.ErrUnauthenticated, err)
	}
	req.Token = r.p.Token(claims, map[string]any{"cnf": nil})
	return r.Adapter.Verify(ctx, req)
}

func (r *right) Describe(ctx context.Context) (auth.Description, error) {
	d, err := r.Adapter.Describe(ctx)
	if r.describe != nil {
		d = r.describe(d)
	}
	return d, err
}

func (r *right) Metadata(ctx context.Context) (json.RawMessage, error) {
	raw, err := r.Adapter.Metadata(ctx)
	if r.metadata == nil {
		return raw, err
	}
	return r.metadata(ctx, raw, err)
}

func (r *right) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	if r.url != nil {
		req = r.url(req)
	}
	url, err := r.Adapter.AuthorizeURL(ctx, req)
	if r.address != nil {
		url = r.address(url)
	}
	return url, err
}

func (r *right) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if r.exchange == nil {
		return r.Adapter.Exchange(ctx, req)
	}
	return r.exchange(ctx, req, r.Adapter.Exchange)
}

func (r *right) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	if r.check == nil {
		return r.Adapter.CheckSession(ctx, req)
	}
	return r.check(ctx, req, r.Adapter.CheckSession)
}

func (r *right) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	l, err := r.Adapter.VerifyLogout(ctx, token)
	if r.logout == nil {
		return l, err
	}
	return r.logout(ctx, token, l, err)
}

func (r *right) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	if r.watch == nil {
		return plugins.ErrUnimplemented
	}
	return r.watch(ctx, revoked)
}

// subject returns a subject with correct adapters, modified by change.
func subject(keys *authtest.Keys, change func(*right)) authtest.Subject {
	out := &kit.Output{}
	return authtest.Subject{
		Keys: keys, Logins: true, Rechecks: true, Heard: out.String,
		Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
			r := &right{Adapter: oidc.New(), p: p, out: out}
			r.UseLogger(hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Trace, JSONFormat: true}))
			change(r)
			return r, func() { _ = r.Close() }, r.Configure(ctx, plugins.Config{JSON: json.RawMessage(authtest.Settings(p))})
		},
	}
}

func part(token string, i int) map[string]any {
	parts := strings.Split(token, ".")
	if len(parts) <= i {
		return nil
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[i])
	var all map[string]any
	_ = json.Unmarshal(raw, &all)
	return all
}

func claimsOf(token string) map[string]any { return part(token, 1) }

func newKeys(t *testing.T) *authtest.Keys {
	t.Helper()
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// prover returns a function that checks DPoP proofs and certificates according to the contract, except for the given
// lie.
func prover(lies ...string) func(req auth.VerifyRequest, cnf map[string]any) error {
	var mu sync.Mutex
	used := map[string]bool{}
	lie := func(about string) bool { return len(lies) > 0 && lies[0] == about }
	return func(req auth.VerifyRequest, cnf map[string]any) error {
		if print, ok := cnf["x5t#S256"].(string); ok {
			if lie("certificate") && strings.EqualFold(print, req.ClientCertificateSHA256) {
				return nil
			}
			if len(cnf) != 1 || print == "" || print != req.ClientCertificateSHA256 {
				return errors.New("another certificate")
			}
			return nil
		}
		proof := req.Headers["dpop"]
		jti, err := authtest.CheckProof(proof, req, cnf)
		claims := claimsOf(proof)
		if err != nil && !(lie("method") && strings.EqualFold(fmt.Sprint(claims["htm"]), req.Method) || lie("token") && strings.Contains(err.Error(), "another token")) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if used[jti] && !lie("replay") {
			return errors.New("the proof was used before")
		}
		if used[jti] = true; lie("memory") && len(used) > 40 {
			clear(used)
		}
		return nil
	}
}

// watcher returns a Watch that reports the revocation of mallory, modified by change, after wait.
func watcher(at *revoking, change func(auth.Revocation) auth.Revocation, wait time.Duration) func(context.Context, func(auth.Revocation) error) error {
	return func(ctx context.Context, revoked func(auth.Revocation) error) error {
		gone := at.next()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-gone:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		if err := revoked(change(auth.Revocation{Issuer: at.issuer, Subject: "mallory"})); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// revoking is the state of two tokens, one of which can be revoked.
type revoking struct {
	issuer string
	mu     sync.Mutex
	gone   chan struct{}
	dead   bool
}

func (r *revoking) next() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

func (r *revoking) begin(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone, r.dead = make(chan struct{}), false
	return nil
}

func (r *revoking) revoke(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = true
	close(r.gone)
	return nil
}

// opaque is an adapter with opaque tokens, and with revocations.
type opaque struct {
	*revoking
	watch func(context.Context, func(auth.Revocation) error) error
}

func (o opaque) Describe(context.Context) (auth.Description, error) {
	return auth.Description{Issuer: o.issuer}, nil
}

func (o opaque) Verify(_ context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	subject, ok := map[string]string{"the-token-of-mallory": "mallory", "the-token-of-alice": "alice"}[req.Token]
	if !ok || o.dead && subject == "mallory" {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return auth.Identity{Issuer: o.issuer, Subject: subject, Email: subject + "@example.com", ExpiresAt: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)}, nil
}

func (opaque) Metadata(context.Context) (json.RawMessage, error) { return nil, plugins.ErrNotFound }

func (o opaque) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	return o.watch(ctx, revoked)
}

const opaqueSamples = `{"good": "the-token-of-alice", "issuer": "words", "subject": "alice", "expiresAt": "2099-01-01T00:00:00Z",
	"people": [{"token": "the-token-of-mallory", "subject": "mallory", "expiresAt": "2099-01-01T00:00:00Z"}]}`

// opaqueSubject returns a subject with an opaque adapter whose watch reports revocations modified by change, after
// wait.
func opaqueSubject(t *testing.T, change func(auth.Revocation) auth.Revocation, wait time.Duration) authtest.Subject {
	t.Helper()
	samples, err := authtest.ParseSamples([]byte(opaqueSamples))
	if err != nil {
		t.Fatal(err)
	}
	at := &revoking{issuer: "words"}
	_ = at.begin(t.Context())
	samples.Revoking = &authtest.Revoking{Token: "the-token-of-mallory", Kept: "the-token-of-alice", Begin: at.begin, Revoke: at.revoke}
	return authtest.Subject{Samples: samples, Revokes: true, Open: func(context.Context, *authtest.Provider) (auth.Adapter, func(), error) {
		return opaque{at, watcher(at, change, wait)}, func() {}, nil
	}}
}

func TestEveryPropertyRestsOnTheContract(t *testing.T) {
	plugintest.Sentences(t, "auth", authtest.Properties())
}

func TestRightButUnusualAdaptersPass(t *testing.T) {
	keys := newKeys(t)
	for name, change := range map[string]func(*right){
		"usual": func(*right) {},
		"30 ms a call": func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				select {
				case <-time.After(30 * time.Millisecond):
				case <-ctx.Done():
				}
				return honest(ctx, req)
			}
		},
		"four calls at a time": func(r *right) {
			slots := make(chan struct{}, 4)
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
					return honest(ctx, req)
				case <-ctx.Done():
					return auth.Identity{}, plugins.Unavailable(ctx.Err())
				}
			}
		},
		"neither names nor scopes": func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				id, err := honest(ctx, req)
				return auth.Identity{Issuer: id.Issuer, Subject: id.Subject, OrganizationID: id.OrganizationID, OrgRole: id.OrgRole, ExpiresAt: id.ExpiresAt}, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Quick), subject(keys, change))
		})
	}
	t.Run("with proofs", func(t *testing.T) {
		t.Parallel()
		prove := prover() // shared by all adapters: a proof is valid once, wherever it is used
		s := subject(keys, func(r *right) { r.binds = prove })
		s.Binds = true
		outcome := property(authtest.Proofs).Judge(t.Context(), plugintest.Trial(kit.Normal), s)
		if outcome.Verdict != kit.Pass {
			t.Errorf("%s: %v %s", outcome.Verdict, outcome.Err, outcome.Why)
		}
	})
	t.Run("words", func(t *testing.T) {
		t.Parallel()
		s := opaqueSubject(t, func(r auth.Revocation) auth.Revocation { return r }, 0)
		for _, p := range authtest.Properties() {
			outcome := p.Judge(t.Context(), plugintest.Trial(kit.Normal), s)
			unjudged := p.Name == authtest.Verdicts || p.Name == authtest.Clocks // the samples contain no bad tokens, and none that expire
			if outcome.Verdict == kit.Fail || (outcome.Verdict == kit.NotJudged) != unjudged {
				t.Errorf("%s: %s: %v %s", p.Name, outcome.Verdict, outcome.Err, outcome.Why)
			}
		}
	})
}

func property(name string) kit.Property[authtest.Subject] {
	for _, p := range authtest.Properties() {
		if p.Name == name {
			return p
		}
	}
	panic(name)
}
