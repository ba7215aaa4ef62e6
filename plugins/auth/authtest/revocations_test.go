package authtest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

const (
	revocable = "the-token-of-alice-that-is-revoked"
	kept      = "the-token-of-bob-that-stays-good"
)

// register is an honest adapter of two tokens, one of which can be revoked.
type register struct {
	mu       sync.Mutex
	revoked  bool
	watchers map[chan auth.Revocation]struct{}
}

func (*register) Describe(context.Context) (auth.Description, error) {
	return auth.Description{Issuer: "register"}, nil
}

func (*register) Metadata(context.Context) (json.RawMessage, error) {
	return nil, plugins.ErrNotFound
}

func (r *register) Verify(_ context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := auth.Identity{Issuer: "register", ExpiresAt: time.Now().Add(time.Hour)}
	switch {
	case req.Token == revocable && !r.revoked:
		id.Subject = "alice"
	case req.Token == kept:
		id.Subject = "bob"
	default:
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return id, nil
}

func (r *register) begin(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoked = false
	return nil
}

func (r *register) revoke(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoked = true
	for watcher := range r.watchers {
		watcher <- auth.Revocation{Issuer: "register", TokenSHA256: sum(revocable)}
	}
	return nil
}

func sum(token string) string {
	digest := sha256.Sum256([]byte(token))
	return hex.EncodeToString(digest[:])
}

func (r *register) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	mine := make(chan auth.Revocation, 16)
	r.mu.Lock()
	if r.watchers == nil {
		r.watchers = map[chan auth.Revocation]struct{}{}
	}
	r.watchers[mine] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, mine)
	}()
	for {
		select {
		case one := <-mine:
			if err := revoked(one); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// revocationLiar changes what Watch of an honest register does.
type revocationLiar struct {
	*register
	watch func(ctx context.Context, r *register, revoked func(auth.Revocation) error) error
}

func (l revocationLiar) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	return l.watch(ctx, l.register, revoked)
}

// reports is a liar whose Watch changes each revocation.
func reports(change func(*auth.Revocation)) func(*register) auth.Adapter {
	return func(r *register) auth.Adapter {
		return revocationLiar{r, func(ctx context.Context, r *register, revoked func(auth.Revocation) error) error {
			return r.Watch(ctx, func(one auth.Revocation) error {
				change(&one)
				return revoked(one)
			})
		}}
	}
}

// watches is a liar whose Watch does something else.
func watches(watch func(ctx context.Context, r *register, revoked func(auth.Revocation) error) error) func(*register) auth.Adapter {
	return func(r *register) auth.Adapter { return revocationLiar{r, watch} }
}

// acceptsRevoked is a liar that accepts what it has reported.
type acceptsRevoked struct{ *register }

func (a acceptsRevoked) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	if req.Token == revocable {
		return auth.Identity{Issuer: "register", Subject: "alice", ExpiresAt: time.Now().Add(time.Hour)}, nil
	}
	return a.register.Verify(ctx, req)
}

type revocationLie struct {
	what, check string
	make        func(*register) auth.Adapter
}

func revocationLies(testEnds <-chan struct{}) []revocationLie {
	const (
		open       = "a watch stays open, and ends with its context"
		inTime     = "a revoked token is reported within two seconds"
		wellFormed = "a revocation names the issuer, and one subject or one token"
		noOther    = "nothing is revoked but what was"
		refused    = "a revoked token is refused"
		again      = "a watch that is opened again reports"
	)
	return []revocationLie{
		{"declares and never sends", inTime, watches(func(ctx context.Context, _ *register, _ func(auth.Revocation) error) error {
			<-ctx.Done()
			return ctx.Err()
		})},
		{"sends after four seconds", inTime, watches(func(ctx context.Context, r *register, revoked func(auth.Revocation) error) error {
			return r.Watch(ctx, func(one auth.Revocation) error {
				select {
				case <-time.After(4 * time.Second):
					return revoked(one)
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})},
		{"ends the stream after a while", open, watches(func(ctx context.Context, r *register, revoked func(auth.Revocation) error) error {
			ctx, cancel := context.WithTimeout(ctx, 600*time.Millisecond)
			defer cancel()
			return r.Watch(ctx, revoked)
		})},
		{"never ends the stream", open, watches(func(_ context.Context, _ *register, _ func(auth.Revocation) error) error {
			<-testEnds
			return nil
		})},
		{"sends for another subject", noOther, reports(func(one *auth.Revocation) { one.TokenSHA256, one.Subject = "", "bob" })},
		{"sends for another token", noOther, reports(func(one *auth.Revocation) { one.TokenSHA256 = sum(kept) })},
		{"sends for a token that nobody has", noOther, reports(func(one *auth.Revocation) { one.TokenSHA256 = sum("nobody's") })},
		{"sends for another issuer", wellFormed, reports(func(one *auth.Revocation) { one.Issuer = "another" })},
		{"sends without an issuer", wellFormed, reports(func(one *auth.Revocation) { one.Issuer = "" })},
		{"sends neither a subject nor a token", wellFormed, reports(func(one *auth.Revocation) { one.TokenSHA256 = "" })},
		{"sends both a subject and a token", wellFormed, reports(func(one *auth.Revocation) { one.Subject = "alice" })},
		{"sends the digest in upper case", wellFormed, reports(func(one *auth.Revocation) { one.TokenSHA256 = strings.ToUpper(one.TokenSHA256) })},
		{"sends the token itself", wellFormed, reports(func(one *auth.Revocation) { one.TokenSHA256 = revocable })},
		{"accepts what it reported", refused, func(r *register) auth.Adapter { return acceptsRevoked{r} }},
		{"reports to the first watch alone", again, func(r *register) auth.Adapter {
			var once sync.Once
			return revocationLiar{r, func(ctx context.Context, r *register, revoked func(auth.Revocation) error) error {
				first := false
				once.Do(func() { first = true })
				return r.Watch(ctx, func(one auth.Revocation) error {
					if !first {
						return nil
					}
					return revoked(one)
				})
			}}
		}},
	}
}

func registerSubject(lie func(*register) auth.Adapter) authtest.Subject {
	r := &register{}
	return authtest.Subject{
		Revokes:  true,
		Revoking: &authtest.Revoking{Token: revocable, Kept: kept, Begin: r.begin, Revoke: r.revoke},
		Open: func(context.Context, *authtest.Provider) (auth.Adapter, func(), error) {
			return lie(r), func() {}, nil
		},
	}
}

// revocationChecks are the checks of the capability alone.
func revocationChecks(s authtest.Subject) []kit.Check[authtest.Subject] {
	plain := s
	plain.Revokes = false
	others := authtest.Checks(plain)
	return slices.DeleteFunc(authtest.Checks(s), func(c kit.Check[authtest.Subject]) bool {
		return slices.ContainsFunc(others, func(o kit.Check[authtest.Subject]) bool { return o.Name == c.Name })
	})
}

func TestAnHonestAdapterKeepsThePromisesAboutRevocations(t *testing.T) {
	s := registerSubject(func(r *register) auth.Adapter { return r })
	for _, result := range kit.Run(t.Context(), revocationChecks(s), s) {
		if result.Err != nil || result.Skipped != "" {
			t.Errorf("%s: %v %s", result.Name, result.Err, result.Skipped)
		}
	}
	plugintest.InContract(t, "auth", revocationChecks(s))
}

func TestEachLieAboutRevocationsIsCaughtByItsCheck(t *testing.T) {
	proven, testEnds := map[string]bool{}, make(chan struct{})
	t.Cleanup(func() { close(testEnds) })
	for _, lie := range revocationLies(testEnds) {
		proven[lie.check] = true
		t.Run(lie.what, func(t *testing.T) {
			t.Parallel()
			s := registerSubject(lie.make)
			checks := slices.DeleteFunc(revocationChecks(s), func(c kit.Check[authtest.Subject]) bool { return c.Name != lie.check })
			if failed := kit.Failed(kit.Run(t.Context(), checks, s)); !slices.Equal(failed, []string{lie.check}) {
				t.Errorf("caught by %q, want %q", failed, lie.check)
			}
		})
	}
	for _, c := range revocationChecks(registerSubject(func(r *register) auth.Adapter { return r })) {
		if !proven[c.Name] {
			t.Errorf("no liar proves the check %q", c.Name)
		}
	}
}

// watchesAnyway has a Watch and does not declare it.
type watchesAnyway struct{ honest }

func (watchesAnyway) Watch(context.Context, func(auth.Revocation) error) error { return nil }
