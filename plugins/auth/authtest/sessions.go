package authtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// rechecks are the promises of CheckSession, of adapters of OpenID providers with the capability "sessions".
func rechecks(s Subject) []check {
	const ends, goesOn = "UNAUTHENTICATED ends the login", "UNAVAILABLE when the provider cannot be asked: the login goes on for some minutes"
	const goodStill = "asks the provider whether the login that a renewal came with is still good"
	again := func(run func(context.Context, *stage, Subject) error) func(context.Context, *stage) error {
		return func(ctx context.Context, st *stage) error { return run(ctx, st, s) }
	}
	return []check{
		{name: "a login that is still good is confirmed, again and again", contract: "returns its identity, with the renewal that takes the place of the old one", run: withRefresh(confirmsAgain)},
		{name: "a login without a refresh token is confirmed while its access token is good", contract: goodStill, run: withoutRefresh(confirmsAgain)},
		{name: "a login that the provider ended is not confirmed", contract: ends, run: inBothWays(refusesEnded)},
		{name: "a login that is about another subject by now is not confirmed", contract: "it is about another subject now", run: inBothWays(refusesOtherSubject)},
		{name: "a login whose key the provider removed is not confirmed", contract: "the key that it was signed with is no longer among the provider's", run: again(refusesRemovedKey)},
		{name: "a login that was checked with a new key outlives the one it began with", contract: "with the renewal that takes the place of the old one", run: again(outlivesItsFirstKey)},
		{name: "a login is confirmed after its access token is over", contract: goodStill, run: withRefresh(outlivesAccessTokens)},
		{name: "a login is confirmed without a new id token, and not when it is about another subject", contract: "it is about another subject now", run: withRefresh(needsNoIDToken)},
		{name: "a login whose new id token is bad is not confirmed", contract: "its new id token is bad", run: refusesNewIDTokens},
		{name: "a renewal that nobody gave is refused", contract: ends, run: refusesRenewals},
		{name: "a renewal is good for another process of the adapter", contract: "A renewal is good for every process with the same settings", run: again(confirmsElsewhere)},
		{name: "the check of a login is unavailable while the provider is away, and the renewal stays good", contract: goesOn, run: inBothWays(recheckCannotTell)},
		{name: "the check of a login returns when its time is over", contract: "Calls come concurrently, each with a deadline", run: recheckInTime},
		{name: "checks of logins at once are each about their own login", contract: "Calls come concurrently, each with a deadline", setup: AnyOrganization, run: rechecksAtOnce},
		{name: "no error of a check repeats the renewal", contract: "No token, code or secret appears in an error or a log line", run: repeatsNoRenewal},
	}
}

// signedIn is a login that has ended well.
type signedIn struct {
	subject  string
	identity auth.Identity
	sessions auth.Sessions
}

var errNoRenewal = kit.Skip("without a refresh token a login has no renewal")

// signIn logs a subject in. The provider gives a refresh token if refreshes is true.
func (st *stage) signIn(ctx context.Context, subject string, refreshes bool) (signedIn, error) {
	login := loginOf(ctx, st)
	if login == nil {
		return signedIn{}, noLogin()
	}
	sessions, ok := st.adapter.(auth.Sessions)
	if !ok {
		return signedIn{}, errors.New("the adapter declares sessions, and has no CheckSession")
	}
	st.provider.signIn(subject, refreshes)
	a := newLogin()
	code, err := browse(ctx, login, a)
	if err != nil {
		return signedIn{}, err
	}
	id, err := login.Exchange(ctx, a.exchange(code))
	switch {
	case err != nil:
		return signedIn{}, fmt.Errorf("the end of a good login failed: %w", err)
	case id.Renewal == "" && refreshes:
		return signedIn{}, errors.New("a login for which the provider gave a refresh token has no renewal; without one the server cannot have it checked again")
	case id.Renewal == "":
		return signedIn{}, errNoRenewal
	case len(id.Renewal) > 32<<10:
		return signedIn{}, fmt.Errorf("the renewal of a login has %d bytes; 32 KiB are the most", len(id.Renewal))
	}
	return signedIn{subject: subject, identity: id, sessions: sessions}, nil
}

// check asks about the login once, and keeps the renewal of the answer.
func (l *signedIn) check(ctx context.Context) error {
	id, err := l.sessions.CheckSession(ctx, auth.SessionCheck{Renewal: l.identity.Renewal, Subject: l.subject})
	switch {
	case err != nil:
		return err
	case id.Issuer != l.identity.Issuer || id.Subject != l.subject:
		return fmt.Errorf("the login of %q of %q was confirmed as that of %q of %q", l.subject, l.identity.Issuer, id.Subject, id.Issuer)
	case id.Renewal == "":
		return errors.New("the login was confirmed without a renewal: it cannot be checked again")
	case len(id.Renewal) > 32<<10:
		return fmt.Errorf("the login was confirmed with a renewal of %d bytes; 32 KiB are the most", len(id.Renewal))
	case id.SessionID != "" && id.SessionID != l.identity.SessionID:
		return fmt.Errorf("the login was of the session %q and was confirmed as that of %q", l.identity.SessionID, id.SessionID)
	case !id.ExpiresAt.IsZero() && id.OrganizationID != l.identity.OrganizationID:
		return fmt.Errorf("the login was of the organization %q and was confirmed for %q", l.identity.OrganizationID, id.OrganizationID)
	}
	l.identity.Renewal = id.Renewal
	return nil
}

// mustEnd wants an answer that ends the login.
func (l *signedIn) mustEnd(ctx context.Context) error {
	id, err := l.sessions.CheckSession(ctx, auth.SessionCheck{Renewal: l.identity.Renewal, Subject: l.subject})
	switch {
	case err == nil:
		return fmt.Errorf("was confirmed as %q's; the answer must be unauthenticated", id.Subject)
	case !errors.Is(err, plugins.ErrUnauthenticated):
		return fmt.Errorf("was answered with %w; the answer must be unauthenticated", err)
	}
	return nil
}

// withRefresh runs a check on a login with a refresh token.
func withRefresh(run func(context.Context, *stage, *signedIn) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		l, err := st.signIn(ctx, "user_alice", true)
		if err != nil {
			return err
		}
		return run(ctx, st, &l)
	}
}

// withoutRefresh runs a check on a login without a refresh token.
func withoutRefresh(run func(context.Context, *stage, *signedIn) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		l, err := st.signIn(ctx, "user_alice", false)
		if err != nil {
			return err
		}
		return run(ctx, st, &l)
	}
}

// inBothWays runs a check on a login with a refresh token, and on one without if the adapter can check such.
func inBothWays(run func(context.Context, *stage, *signedIn) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		for _, refreshes := range []bool{true, false} {
			l, err := st.signIn(ctx, "user_alice", refreshes)
			if errors.Is(err, errNoRenewal) && !refreshes {
				return nil // what has no renewal is not checked
			}
			if err != nil {
				return err
			}
			if err := run(ctx, st, &l); err != nil {
				return fmt.Errorf("a login with%s a refresh token: %w", map[bool]string{true: "", false: "out"}[refreshes], err)
			}
		}
		return nil
	}
}

func confirmsAgain(ctx context.Context, _ *stage, l *signedIn) error {
	for round := 1; round <= 4; round++ {
		if err := l.check(ctx); err != nil {
			return fmt.Errorf("check number %d of a login that is still good: %w", round, err)
		}
	}
	return nil
}

func refusesEnded(ctx context.Context, st *stage, l *signedIn) error {
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("a login that is still good was not confirmed: %w", err)
	}
	st.provider.endSessions(l.subject)
	if err := l.mustEnd(ctx); err != nil {
		return fmt.Errorf("after the provider ended it, it %w", err)
	}
	return nil
}

func refusesOtherSubject(ctx context.Context, st *stage, l *signedIn) error {
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("a login that is still good was not confirmed: %w", err)
	}
	st.provider.become("user_mallory")
	defer st.provider.become("")
	if err := l.mustEnd(ctx); err != nil {
		return fmt.Errorf("when the provider answers about user_mallory, the login of %s %w", l.subject, err)
	}
	return nil
}

func refusesRemovedKey(ctx context.Context, st *stage, s Subject) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	st.provider.Rotate()
	if err := st.open(ctx, s); err != nil { // a fresh adapter has no key set that is a minute old
		return err
	}
	l.sessions = st.adapter.(auth.Sessions) //nolint:forcetypeassert // the first one has it
	if err := l.mustEnd(ctx); err != nil {
		return fmt.Errorf("a login whose key the provider has removed %w", err)
	}
	return nil
}

// outlivesItsFirstKey checks a login while the provider has two keys, and again when the first is gone. Each
// check is made by a fresh adapter, which has read the key set as it is then.
func outlivesItsFirstKey(ctx context.Context, st *stage, s Subject) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	st.provider.Add()
	st.provider.forging(func(good map[string]any) any { return st.provider.SecondToken(good) })
	defer st.provider.forging(nil)
	for _, moment := range []string{"while the provider has an old and a new key", "once the provider has removed the old key"} {
		if err := st.open(ctx, s); err != nil {
			return err
		}
		l.sessions = st.adapter.(auth.Sessions) //nolint:forcetypeassert // the first one has it
		if err := l.check(ctx); err != nil {
			return fmt.Errorf("the provider signs with a new key; %s, the check of a login failed: %w", moment, err)
		}
		st.provider.Rotate()
	}
	return nil
}

func outlivesAccessTokens(ctx context.Context, st *stage, l *signedIn) error {
	for round := 1; round <= 3; round++ {
		st.provider.endAccess()
		if err := l.check(ctx); err != nil {
			return fmt.Errorf("check number %d of a login whose access token is over and whose refresh token is good: %w", round, err)
		}
	}
	return nil
}

// needsNoIDToken checks a login whose provider gives no id token for a refresh token (OpenID Connect Core 1.0,
// section 12.2).
func needsNoIDToken(ctx context.Context, st *stage, l *signedIn) error {
	st.provider.SetFault(NoIDToken)
	defer st.provider.SetFault(NoFault)
	for range 2 {
		if err := l.check(ctx); err != nil {
			return fmt.Errorf("a login that is still good, for which the provider gives no new id token: %w", err)
		}
	}
	st.provider.become("user_mallory")
	defer st.provider.become("")
	if err := l.mustEnd(ctx); err != nil {
		return fmt.Errorf("when the provider gives no new id token and answers about user_mallory, the login of %s %w", l.subject, err)
	}
	return nil
}

func refusesNewIDTokens(ctx context.Context, st *stage) error {
	forgeries := st.provider.idForgeries()
	delete(forgeries, inList) // which is no new id token at all
	for _, what := range slices.Sorted(maps.Keys(forgeries)) {
		l, err := st.signIn(ctx, "user_alice", true)
		if err != nil {
			return err
		}
		if err := l.check(ctx); err != nil {
			return fmt.Errorf("a login that is still good was not confirmed: %w", err)
		}
		st.provider.forging(forgeries[what])
		err = l.mustEnd(ctx)
		st.provider.forging(nil)
		if err != nil {
			return fmt.Errorf("with a new id token %s, the login %w", what, err)
		}
	}
	return nil
}

func confirmsElsewhere(ctx context.Context, st *stage, s Subject) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	if err := st.open(ctx, s); err != nil {
		return err
	}
	l.sessions = st.adapter.(auth.Sessions) //nolint:forcetypeassert // the first one has it
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("a login of one process was not confirmed by another one with the same settings: %w", err)
	}
	return nil
}

func refusesRenewals(ctx context.Context, st *stage) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	good := l.identity.Renewal.Reveal()
	for _, wrong := range []string{"", "undefined", "{}", `{"sub":"user_alice"}`, strings.Repeat("x", 32<<10), good[:len(good)/2]} {
		l.identity.Renewal = plugins.Secret(wrong)
		if err := l.mustEnd(ctx); err != nil {
			return fmt.Errorf("a login with a renewal of %d bytes that nobody gave %w", len(wrong), err)
		}
	}
	return nil
}

func recheckCannotTell(ctx context.Context, st *stage, l *signedIn) error {
	for _, fault := range []Fault{Away, Broken, Junk} {
		st.provider.SetFault(fault)
		id, err := l.sessions.CheckSession(ctx, auth.SessionCheck{Renewal: l.identity.Renewal, Subject: l.subject})
		st.provider.SetFault(NoFault)
		if err := mustNotTell(id, err); err != nil {
			return fmt.Errorf("a check while the provider %s %w", map[Fault]string{Away: "is away", Broken: "answers 500", Junk: "answers with anything but JSON"}[fault], err)
		}
	}
	for until := time.Now().Add(15 * time.Second); ; {
		err := l.check(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, plugins.ErrUnavailable) || time.Now().After(until) {
			return fmt.Errorf("once the provider was back, the same renewal was not accepted: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func recheckInTime(ctx context.Context, st *stage) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	st.provider.SetFault(Hanging)
	return inTime(ctx, "the check of a login", func(ctx context.Context) error {
		_, err := l.sessions.CheckSession(ctx, auth.SessionCheck{Renewal: l.identity.Renewal, Subject: l.subject})
		return err
	})
}

func rechecksAtOnce(ctx context.Context, st *stage) error {
	logins := make([]signedIn, 8)
	for i := range logins {
		var err error
		if logins[i], err = st.signIn(ctx, fmt.Sprintf("user_%d", i), true); err != nil {
			return err
		}
	}
	st.provider.endSessions("user_3")
	errs := make([]error, len(logins))
	var wg sync.WaitGroup
	for i := range logins {
		wg.Go(func() {
			if i == 3 {
				errs[i] = logins[i].mustEnd(ctx)
				return
			}
			errs[i] = errors.Join(logins[i].check(ctx), logins[i].check(ctx))
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("of %d logins of different people that are checked at once, of which the provider ended that of user_3, the one of user_%d: %w", len(logins), i, err)
		}
	}
	return nil
}

func repeatsNoRenewal(ctx context.Context, st *stage) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	const nobodys = "a-renewal-that-nobody-gave-0123456789"
	ask := func(renewal plugins.Secret) error {
		_, err := l.sessions.CheckSession(ctx, auth.SessionCheck{Renewal: renewal, Subject: l.subject})
		return err
	}
	secrets := append(st.provider.refreshTokens(), l.identity.Renewal.Reveal(), nobodys)
	st.provider.SetFault(Broken)
	errs := []error{ask(l.identity.Renewal), ask(nobodys)}
	st.provider.SetFault(NoFault)
	st.provider.endSessions(l.subject)
	errs = append(errs, ask(l.identity.Renewal))
	for _, secret := range secrets {
		for _, err := range errs {
			if err != nil && strings.Contains(err.Error(), secret) {
				return errors.New("the error of a check holds the renewal or the refresh token in it")
			}
		}
	}
	return nil
}
