package authtest_test

import (
	"cmp"
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

// right is an adapter that honors the contract, with hooks for small changes. A nil hook changes nothing.
type right struct {
	*oidc.Adapter
	p   *authtest.Provider
	out *kit.Output // receives its log lines and what it prints

	verify    func(*verifying)
	authorize func(*authorizing)
	exchange  func(*exchanging)
	check     func(*checking)
	logout    func(*loggingOut)
	describe  func(*auth.Description)
	metadata  func(raw *json.RawMessage, err *error)
	watch     func(ctx context.Context, revoked func(auth.Revocation) error) error
	binds     func(req auth.VerifyRequest, cnf map[string]any) error
}

// call is a call to one method. Its hook may change the request, have the honest method answer, and
// change the answer.
type call[Q, A any] struct {
	*right
	ctx    context.Context //nolint:containedctx // of one call
	req    Q
	honest func(context.Context, Q) (A, error)
	got    A
	err    error
}

type (
	verifying   = call[auth.VerifyRequest, auth.Identity]
	authorizing = call[auth.AuthorizeRequest, string]
	exchanging  = call[auth.ExchangeRequest, auth.Identity]
	checking    = call[auth.SessionCheck, auth.Identity]
	loggingOut  = call[string, auth.Logout]
)

func (c *call[Q, A]) ask() { c.got, c.err = c.honest(c.ctx, c.req) }

// says reports whether the honest method returned an error with this text.
func (c *call[Q, A]) says(reason string) bool {
	return c.err != nil && strings.Contains(c.err.Error(), reason)
}

// after returns a hook that changes the honest answer.
func after[Q, A any](change func(c *call[Q, A])) func(*call[Q, A]) {
	return func(c *call[Q, A]) {
		c.ask()
		change(c)
	}
}

func run[Q, A any](ctx context.Context, r *right, hook func(*call[Q, A]), req Q, honest func(context.Context, Q) (A, error)) (A, error) {
	c := &call[Q, A]{right: r, ctx: ctx, req: req, honest: honest}
	if hook == nil {
		hook = (*call[Q, A]).ask
	}
	hook(c)
	return c.got, c.err
}

func (r *right) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	return run(ctx, r, r.verify, req, r.bound)
}

// bound verifies a token that may be bound to a key. If the request proves possession of the key, it verifies the same
// claims without the binding, signed again by the kit's provider.
func (r *right) bound(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := r.Adapter.Verify(ctx, req)
	if r.binds == nil || err == nil || !strings.Contains(err.Error(), "(cnf)") {
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
		r.describe(&d)
	}
	return d, err
}

func (r *right) Metadata(ctx context.Context) (json.RawMessage, error) {
	raw, err := r.Adapter.Metadata(ctx)
	if r.metadata != nil {
		r.metadata(&raw, &err)
	}
	return raw, err
}

func (r *right) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	return run(ctx, r, r.authorize, req, r.Adapter.AuthorizeURL)
}

func (r *right) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	return run(ctx, r, r.exchange, req, r.Adapter.Exchange)
}

func (r *right) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	return run(ctx, r, r.check, req, r.Adapter.CheckSession)
}

func (r *right) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	return run(ctx, r, r.logout, token, r.Adapter.VerifyLogout)
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
func prover(keys *authtest.Keys, lies ...string) func(req auth.VerifyRequest, cnf map[string]any) error {
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
		jti, err := keys.CheckProof(proof, req, cnf)
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
		if lie("time") {
			time.AfterFunc(30*time.Second, func() {
				mu.Lock()
				defer mu.Unlock()
				delete(used, jti)
			})
		}
		return nil
	}
}

// proving returns a subject whose adapters check proofs, except for the given lie.
func proving(keys *authtest.Keys, lies ...string) authtest.Subject {
	prove := prover(keys, lies...) // shared by all adapters: a proof is valid once, wherever it is used
	s := subject(keys, func(r *right) { r.binds = prove })
	s.Binds = true
	return s
}

// watcher returns a Watch that reports the revocation of mallory, modified by change, after wait.
func watcher(at *revoking, change func(*auth.Revocation), wait time.Duration) func(context.Context, func(auth.Revocation) error) error {
	return func(ctx context.Context, revoked func(auth.Revocation) error) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-at.next():
		}
		if err := kit.Pause(ctx, wait); err != nil {
			return err
		}
		r := auth.Revocation{Issuer: at.issuer, Subject: "mallory"}
		change(&r)
		if err := revoked(r); err != nil {
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
func opaqueSubject(t *testing.T, change func(*auth.Revocation), wait time.Duration) authtest.Subject {
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

func TestEveryPropertyCitesTheContract(t *testing.T) {
	plugintest.Sentences(t, "auth")
}

func TestCorrectButUnusualAdaptersPass(t *testing.T) {
	keys := newKeys(t)
	for name, change := range map[string]func(*right){
		"usual": func(*right) {},
		"30 ms a call": verifies(func(c *verifying) {
			_ = kit.Pause(c.ctx, 30*time.Millisecond)
			c.ask()
		}),
		"four calls at a time": func(r *right) {
			slots := make(chan struct{}, 4)
			r.verify = func(c *verifying) {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
					c.ask()
				case <-c.ctx.Done():
					c.err = plugins.Unavailable(c.ctx.Err())
				}
			}
		},
		"remembers tokens for a second": func(r *right) {
			var known sync.Map
			r.verify = func(c *verifying) {
				key := c.req.Token + " " + strings.Join(c.req.Audiences, " ")
				if id, ok := known.Load(key); ok && time.Now().Before(id.(auth.Identity).ExpiresAt) {
					c.got = id.(auth.Identity)
					return
				}
				if c.ask(); c.err == nil && r.p.Setup != authtest.Introspecting {
					known.Store(key, c.got)
					time.AfterFunc(time.Second, func() { known.Delete(key) })
				}
			}
		},
		"a second time before it gives up": verifies(after(func(c *verifying) {
			if errors.Is(c.err, plugins.ErrUnavailable) && kit.Pause(c.ctx, 200*time.Millisecond) == nil {
				c.ask()
			}
		})),
		"member for no role": verifies(after(func(c *verifying) { c.got.OrgRole = cmp.Or(c.got.OrgRole, "member") })),
		"neither names nor scopes": verifies(after(func(c *verifying) {
			id := c.got
			c.got = auth.Identity{Issuer: id.Issuer, Subject: id.Subject, OrganizationID: id.OrganizationID, OrgRole: id.OrgRole, ExpiresAt: id.ExpiresAt}
		})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Quick), subject(keys, change))
		})
	}
	t.Run("with proofs", func(t *testing.T) {
		t.Parallel()
		outcome := property(authtest.Proofs).Judge(t.Context(), plugintest.Trial(kit.Normal), proving(keys))
		if outcome.Verdict != kit.Pass {
			t.Errorf("%s: %v %s", outcome.Verdict, outcome.Err, outcome.Why)
		}
	})
	t.Run("words", func(t *testing.T) {
		t.Parallel()
		s := opaqueSubject(t, func(*auth.Revocation) {}, 0)
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
