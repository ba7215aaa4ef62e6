package authtest

import (
	"context"
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Revoking describes a token that the kit can revoke. Begin makes both tokens valid; Revoke makes the adapter learn
// that Token is no longer valid. Both may be called several times.
type Revoking struct {
	Token  string // Revoke revokes it
	Kept   string // of another subject; stays valid
	Begin  func(ctx context.Context) error
	Revoke func(ctx context.Context) error
}

const (
	reportTime  = 3 * time.Second        // how long the adapter has to report a revocation: two seconds, plus an allowance for a busy machine
	watchStarts = 300 * time.Millisecond // how long a watch gets to start before a token is revoked
	stillOpen   = time.Second            // how long to observe a watch that must stay open
)

// watch is an open stream of revocations.
type watch struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned err
	err    error
	found  chan auth.Revocation
}

func (st *stage) watch(ctx context.Context) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel, ended: make(chan struct{}), found: make(chan auth.Revocation, 100)}
	go func() {
		defer close(w.ended)
		revoker, ok := st.adapter.(auth.Revoker)
		if !ok {
			w.err = errors.New("no such method")
			return
		}
		w.err = revoker.Watch(ctx, func(r auth.Revocation) error {
			select {
			case w.found <- r:
			default: // so many are wrong anyway
			}
			return nil
		})
	}()
	return w
}

// revocationsHold opens watches, revokes tokens and checks what is reported: nothing at first, then exactly the
// revocation, several times.
func revocationsHold(ctx context.Context, s Subject) {
	if !s.Revokes {
		kit.Must(kit.DoesNotApply("the adapter does not declare the capability revocations"))
	}
	var r *Revoking
	if s.Samples != nil {
		r = s.Samples.Revoking
	}
	s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) {
		w := st.watch(ctx)
		defer w.cancel()
		w.staysOpen(stillOpen)
		w.cancel()
		select {
		case <-w.ended:
		case <-time.After(s.prompt()):
			kit.Reject("a watch that goes on", "its end: the server has closed it", sWatch, "Watch", "close the stream")
		}
		if r == nil {
			kit.Must(kit.CannotJudge("the kit has no way to revoke a token: add revocation to --samples, with two tokens and two commands"))
		}
		rounds := max(2, s.trial.Count(3))
		s.trial.Cover("%d revocations, each with a new watch", rounds)
		for range rounds {
			st.revokes(ctx, r)
		}
	})
}

// staysOpen fails if the watch ends within the given time.
func (w *watch) staysOpen(long time.Duration) {
	select {
	case <-w.ended:
		kit.Reject("the stream ended: "+kit.ErrorText(w.err), "a stream that stays open", sOpen, "Watch")
	case <-time.After(long):
	}
}

// revokes runs one round: it makes two tokens valid, opens a watch and revokes one of them.
func (st *stage) revokes(ctx context.Context, r *Revoking) {
	if err := r.Begin(ctx); err != nil {
		kit.Must(kit.CannotJudge("the command begin of the samples failed: %v", err))
	}
	steps := []string{"begin", "Watch"}
	verify := func(token, name string, want answers, steps ...string) {
		st.call(ctx, st.patience(), auth.VerifyRequest{Token: token}, func(d *demand, _ time.Time) { *d = demand{allowed: want, why: name, sentence: sNoLonger} }, steps...)
	}
	for _, token := range []string{r.Token, r.Kept} {
		verify(token, "the token is in force", accept, "begin", "verify a token that is in force")
	}
	about := kit.Got(st.adapter.Describe(ctx))
	gone := kit.Got(st.adapter.Verify(ctx, auth.VerifyRequest{Token: r.Token}))
	w := st.watch(ctx)
	defer w.cancel()
	w.staysOpen(watchStarts)
	early := len(w.found)
	if err := r.Revoke(ctx); err != nil {
		kit.Must(kit.CannotJudge("the command revoke of the samples failed: %v", err))
	}
	steps = append(steps, "revoke the token")
	fail := func(answered, demanded, sentence string) { kit.Reject(answered, demanded, sentence, steps...) }
	var reports []auth.Revocation
	select {
	case first := <-w.found:
		reports = append(reports, first)
	case <-w.ended:
		fail("the stream ended: "+kit.ErrorText(w.err), "a report of the revocation", sOpen)
	case <-time.After(st.trial.Limit(reportTime)):
		fail("nothing", "a report of the revocation within two seconds", sWatch)
	}
	_ = kit.Pause(ctx, watchStarts) // for reports that must not come
	for len(w.found) > 0 {
		reports = append(reports, <-w.found)
	}
	for _, one := range reports {
		switch answer := fmt.Sprintf("%+v", one); {
		case early > 0:
			fail(answer, "nothing before something was revoked", sNoLonger)
		case one.Issuer != about.Issuer:
			fail(answer, fmt.Sprintf("the issuer %q", about.Issuer), sNoLonger)
		case (one.Subject == "") == (one.TokenSHA256 == ""):
			fail(answer, "either a subject or a token", sNoLonger)
		case one.Subject != "" && one.Subject != gone.Subject, one.TokenSHA256 != "" && one.TokenSHA256 != hex.EncodeToString(hashed(crypto.SHA256, []byte(r.Token))):
			fail(answer, "no revocation of another subject or token; a token is 64 lower-case hex digits", sNoLonger)
		}
	}
	verify(r.Token, "the token was reported as revoked", refuse, append(steps, "verify the token")...)
	verify(r.Kept, "another token was revoked", accept, append(steps, "verify the token that is kept")...)
}
