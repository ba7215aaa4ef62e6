package authtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Revoking is a token that the kit may have revoked, and how. Begin puts both tokens into force and
// returns; Revoke makes the adapter learn that Token is no longer good. Both may be called several times.
type Revoking struct {
	Token  string // revoked by Revoke
	Kept   string // of another subject; stays good
	Begin  func(ctx context.Context) error
	Revoke func(ctx context.Context) error
}

const (
	// reportTime is what an adapter has to report a revocation, with something for the machine.
	reportTime = 2*time.Second + time.Second
	// watchStarts is what a watch is given to begin before something is revoked.
	watchStarts = 300 * time.Millisecond
	// stillOpen is how long a watch is looked at that must stay open.
	stillOpen = time.Second
)

// revocations are the promises of the capability "revocations".
func revocations(s Subject) []check {
	all := []check{
		{name: "without the capability revocations a watch is unimplemented", contract: "an adapter that has it tells the server", run: func(ctx context.Context, st *stage) error {
			if s.Revokes {
				return kit.Skip("the adapter has the capability revocations")
			}
			return watchIsUnimplemented(ctx, st)
		}},
	}
	if !s.Revokes {
		return all
	}
	return append(all,
		check{name: "a watch stays open, and ends with its context", contract: "The stream stays open", run: watchStaysOpen},
		check{name: "a revoked token is reported within two seconds", contract: "each within two seconds of the adapter's learning of it", run: revoking(s, reportsInTime)},
		check{name: "a revocation names the issuer, and one subject or one token", contract: "one subject or one token that is no longer good", run: revoking(s, revocationIsWellFormed)},
		check{name: "nothing is revoked but what was", contract: "which subjects and tokens are no longer good", run: revoking(s, revokesNothingElse)},
		check{name: "a revoked token is refused", contract: "no longer good", run: revoking(s, refusesRevoked)},
		check{name: "a watch that is opened again reports", contract: "when it ends, the server opens it again", run: revoking(s, reportsAgain)},
	)
}

// revoking is a check that needs something to revoke.
func revoking(s Subject, run func(context.Context, *stage, *Revoking) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if s.Revoking == nil {
			return kit.Skip("the kit does not know how to have a token revoked")
		}
		if err := s.Revoking.Begin(ctx); err != nil {
			return fmt.Errorf("put the tokens into force: %w", err)
		}
		for _, token := range []string{s.Revoking.Token, s.Revoking.Kept} {
			if _, err := st.verify(ctx, token); err != nil {
				return fmt.Errorf("a token that is not revoked yet was not accepted: %w", err)
			}
		}
		return run(ctx, st, s.Revoking)
	}
}

func watchIsUnimplemented(ctx context.Context, st *stage) error {
	revoker, ok := st.adapter.(auth.Revoker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stillOpen)
	defer cancel()
	err := revoker.Watch(ctx, func(auth.Revocation) error { return nil })
	if !errors.Is(err, plugins.ErrUnimplemented) {
		return fmt.Errorf("a watch of an adapter that does not declare revocations ended with %w; it must be unimplemented", orEnded(err))
	}
	return nil
}

// watch is an open stream of revocations.
type watch struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned err
	err    error
	found  chan struct{} // receives after each revocation

	mu  sync.Mutex
	all []auth.Revocation
}

func (st *stage) watch(ctx context.Context) (*watch, error) {
	revoker, ok := st.adapter.(auth.Revoker)
	if !ok {
		return nil, errors.New("the adapter declares revocations, and has no Watch")
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel, ended: make(chan struct{}), found: make(chan struct{}, 1)}
	go func() {
		defer close(w.ended)
		w.err = revoker.Watch(ctx, func(r auth.Revocation) error {
			w.mu.Lock()
			w.all = append(w.all, r)
			w.mu.Unlock()
			select {
			case w.found <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	select {
	case <-w.ended:
		cancel()
		return nil, fmt.Errorf("the watch ended at once: %w", orEnded(w.err))
	case <-time.After(watchStarts):
		return w, nil
	}
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// revocations are those that were reported until now.
func (w *watch) revocations() []auth.Revocation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]auth.Revocation(nil), w.all...)
}

// reported revokes the token and waits until a revocation is reported, any one.
func (w *watch) reported(ctx context.Context, r *Revoking) error {
	if err := r.Revoke(ctx); err != nil {
		return fmt.Errorf("have a token revoked: %w", err)
	}
	select {
	case <-w.found:
		return nil
	case <-w.ended:
		return fmt.Errorf("the watch ended (%w) before it reported the token that was revoked", orEnded(w.err))
	case <-time.After(reportTime):
		return fmt.Errorf("a revoked token was not reported within %v", reportTime)
	}
}

func watchStaysOpen(ctx context.Context, st *stage) error {
	w, err := st.watch(ctx)
	if err != nil {
		return err
	}
	defer w.cancel()
	select {
	case <-w.ended:
		return fmt.Errorf("the watch ended (%w); it must stay open", orEnded(w.err))
	case <-time.After(stillOpen):
	}
	w.cancel()
	select {
	case <-w.ended:
		return nil
	case <-time.After(prompt):
		return errors.New("the watch goes on after its context has ended")
	}
}

func reportsInTime(ctx context.Context, st *stage, r *Revoking) error {
	w, err := st.watch(ctx)
	if err != nil {
		return err
	}
	defer w.cancel()
	return w.reported(ctx, r)
}

// revoked opens a watch, has the token revoked, and returns what was reported.
func (st *stage) revoked(ctx context.Context, r *Revoking) ([]auth.Revocation, error) {
	w, err := st.watch(ctx)
	if err != nil {
		return nil, kit.Skip("no revocation is reported")
	}
	defer w.cancel()
	if err := w.reported(ctx, r); err != nil {
		return nil, kit.Skip("no revocation is reported")
	}
	select { // what else may come
	case <-w.found:
	case <-time.After(watchStarts):
	}
	return w.revocations(), nil
}

func revocationIsWellFormed(ctx context.Context, st *stage, r *Revoking) error {
	all, err := st.revoked(ctx, r)
	if err != nil {
		return err
	}
	about, err := st.adapter.Describe(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		switch {
		case one.Issuer != about.Issuer:
			return fmt.Errorf("a revocation names the issuer %q, describe names %q", one.Issuer, about.Issuer)
		case (one.Subject == "") == (one.TokenSHA256 == ""):
			return errors.New("a revocation must name either a subject or a token")
		case one.TokenSHA256 != "" && !isDigest(one.TokenSHA256):
			return fmt.Errorf("a revocation names the token %q; it must be a SHA-256 in 64 lower-case hex digits", start(one.TokenSHA256))
		}
	}
	return nil
}

func isDigest(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size && text == strings.ToLower(text)
}

func revokesNothingElse(ctx context.Context, st *stage, r *Revoking) error {
	kept, err := st.verify(ctx, r.Kept)
	if err != nil {
		return fmt.Errorf("a token that is not revoked was not accepted: %w", err)
	}
	gone, err := st.verify(ctx, r.Token)
	if err != nil {
		return fmt.Errorf("a token that is not revoked yet was not accepted: %w", err)
	}
	all, err := st.revoked(ctx, r)
	if err != nil {
		return err
	}
	for _, one := range all {
		switch {
		case one.Subject == kept.Subject, strings.EqualFold(one.TokenSHA256, sumOf(r.Kept)):
			return fmt.Errorf("the subject %q or its token is reported as revoked; it was another one", kept.Subject)
		case one.Subject != "" && one.Subject != gone.Subject, one.TokenSHA256 != "" && isDigest(one.TokenSHA256) && one.TokenSHA256 != sumOf(r.Token):
			return errors.New("a subject or a token is reported as revoked that was not")
		}
	}
	if _, err := st.verify(ctx, r.Kept); err != nil {
		return fmt.Errorf("after the revocation of another one, a good token was not accepted: %w", err)
	}
	return nil
}

func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func refusesRevoked(ctx context.Context, st *stage, r *Revoking) error {
	if _, err := st.revoked(ctx, r); err != nil {
		return err
	}
	id, err := st.verify(ctx, r.Token)
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a token that was reported as revoked %w", err)
	}
	return nil
}

func reportsAgain(ctx context.Context, st *stage, r *Revoking) error {
	first, err := st.watch(ctx)
	if err != nil {
		return kit.Skip("no watch stays open")
	}
	if err := first.reported(ctx, r); err != nil {
		first.cancel()
		return kit.Skip("no revocation is reported")
	}
	first.cancel()
	select {
	case <-first.ended:
	case <-time.After(prompt):
		return kit.Skip("a watch does not end with its context")
	}
	if err := r.Begin(ctx); err != nil {
		return fmt.Errorf("put the tokens into force: %w", err)
	}
	if _, err := st.verify(ctx, r.Token); err != nil {
		return fmt.Errorf("a token that is in force again was not accepted: %w", err)
	}
	second, err := st.watch(ctx)
	if err != nil {
		return fmt.Errorf("the second watch: %w", err)
	}
	defer second.cancel()
	if err := second.reported(ctx, r); err != nil {
		return fmt.Errorf("the second watch: %w", err)
	}
	return nil
}
