package authtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

const unwritten = "nor in anything else that the adapter prints"

// silenceAboutTokens is the promise about what every adapter is given.
func silenceAboutTokens() []check {
	return []check{{name: "nothing that the adapter logs or prints holds a bearer token", contract: unwritten, run: silent(aboutTokens)}}
}

// silenceAboutLogins is the promise about what only logins bring.
func silenceAboutLogins() []check {
	return []check{{name: "nothing that the adapter logs or prints holds a login code, a code verifier or what the provider gave for them", contract: unwritten, run: silent(aboutLogins)}}
}

// silenceAboutSessions are the promises about what checks of logins bring.
func silenceAboutSessions() []check {
	return []check{
		{name: "nothing that the adapter logs or prints holds a refresh token or a renewal", contract: unwritten, run: silent(aboutRenewals)},
		{name: "nothing that the adapter logs or prints holds a logout token", contract: unwritten, run: silent(aboutLogouts)},
	}
}

// secrets are what an adapter was given in a check.
type secrets []kit.Secret

// add adds a secret. Of a token with dots the claims and the signature count alone, too; its header says
// nothing about anybody.
func (s *secrets) add(what, text string) {
	*s = append(*s, kit.Secret{What: what, Text: text})
	if parts := strings.Split(text, "."); len(parts) == 3 {
		*s = append(*s, kit.Secret{What: "the claims of " + what, Text: parts[1]}, kit.Secret{What: "the signature of " + what, Text: parts[2]})
	}
}

// listening is how long the kit listens after the last call.
const listening = 250 * time.Millisecond

// silent makes calls, ends the adapter, and looks for what the calls gave to it in all that it wrote since.
func silent(calls func(context.Context, *stage, *secrets) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if st.heard == nil {
			return kit.Skip("the kit does not hear what the adapter logs and prints")
		}
		before := len(st.heard())
		var given secrets
		if err := calls(ctx, st, &given); err != nil {
			return err
		}
		if st.provider != nil {
			given = append(given, st.provider.gave()...)
		}
		select {
		case <-time.After(listening):
		case <-ctx.Done():
			return ctx.Err()
		}
		end := st.close
		st.close = func() {}
		end() // after which all that it wrote was heard
		if err := kit.Tells(st.heard()[before:], given); err != nil {
			return fmt.Errorf("of what the adapter logged and printed: %w", err)
		}
		return nil
	}
}

func aboutTokens(ctx context.Context, st *stage, given *secrets) error {
	verify := func(what, token string) error {
		given.add(what, token)
		_, err := st.verify(ctx, token)
		return err
	}
	if good := st.samples.Good; good != "" {
		for range 2 {
			if err := verify("a bearer token that was accepted", good); err != nil {
				return fmt.Errorf("a good token was not accepted, so what is written about it proves nothing: %w", err)
			}
		}
	}
	if st.provider != nil { // before the adapter has asked for keys too often
		for _, fault := range []Fault{Broken, Junk, Away} {
			st.provider.SetFault(fault)
			_ = verify("a bearer token whose key could not be read", st.provider.SecondToken()) // other checks judge the answer
		}
		st.provider.SetFault(NoFault)
	}
	for _, token := range []string{"an-opaque-token-" + rand.Text(), "sk_" + rand.Text() + "/+=", rand.Text() + "." + rand.Text() + "." + rand.Text()} {
		_ = verify("a bearer token that nobody gave", token)
	}
	for _, clause := range clauses() {
		for _, f := range st.forgeries(clause) {
			_ = verify(fmt.Sprintf("a bearer token with %s (%s)", clause, f.Name), f.Token)
		}
	}
	return nil
}

// aboutLogins ends one login well, and others in every wrong way. The codes come first, while nothing is wrong
// with the provider.
func aboutLogins(ctx context.Context, st *stage, given *secrets) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	faults := []Fault{
		NoFault, NoFault, NoFault, NoFault, ForAnotherClient, OldIDToken, ForgedIDToken, NoIDToken, OtherOrgIDToken,
		NamelessIDToken, OtherUserInfo, TokenElsewhere, OtherAccessToken, Junk, Broken, Away,
	}
	requests := make([]auth.ExchangeRequest, len(faults))
	for i := range requests {
		a := newLogin()
		code, err := browse(ctx, login, a)
		if err != nil {
			return err
		}
		requests[i] = a.exchange(code)
	}
	requests[1].Nonce = rand.Text()
	requests[2].CodeVerifier = rand.Text() + rand.Text()
	requests[3].Code = "4/" + rand.Text() + "+="
	for i, req := range requests {
		given.add("a login code", req.Code)
		given.add("a code verifier", req.CodeVerifier)
		st.provider.signIn("user_alice", i%2 == 0)
		st.provider.SetFault(faults[i])
		id, err := login.Exchange(ctx, req)
		st.provider.SetFault(NoFault)
		if i == 0 && err != nil {
			return fmt.Errorf("the end of a good login failed, so what is written about it proves nothing: %w", err)
		}
		given.add("the renewal of a login", id.Renewal.Reveal())
	}
	return nil
}

func aboutRenewals(ctx context.Context, st *stage, given *secrets) error {
	l, err := st.signIn(ctx, "user_alice", true)
	if err != nil {
		return err
	}
	ask := func() error {
		given.add("a renewal", l.identity.Renewal.Reveal())
		err := l.check(ctx)
		given.add("a renewal", l.identity.Renewal.Reveal())
		return err
	}
	for range 2 {
		if err := ask(); err != nil {
			return fmt.Errorf("a login that is still good was not confirmed, so what is written about it proves nothing: %w", err)
		}
	}
	good := l.identity.Renewal
	l.identity.Renewal = plugins.Secret("a-renewal-that-nobody-gave-" + rand.Text())
	_ = ask() // other checks judge the answer
	l.identity.Renewal = good
	st.provider.become("user_mallory")
	_ = ask()
	st.provider.become("")
	if l, err = st.signIn(ctx, "user_alice", true); err != nil {
		return err
	}
	st.provider.endSessions(l.subject)
	_ = ask()
	if l, err = st.signIn(ctx, "user_alice", true); err != nil {
		return err
	}
	for _, fault := range []Fault{Broken, Junk, Away} {
		st.provider.SetFault(fault)
		_ = ask()
	}
	st.provider.SetFault(NoFault)
	return nil
}

func aboutLogouts(ctx context.Context, st *stage, given *secrets) error {
	sessions, err := sessionsOf(ctx, st)
	if err != nil {
		return err
	}
	good := st.provider.logoutToken(nil)
	given.add("a logout token", good)
	for range 2 {
		if _, err := sessions.VerifyLogout(ctx, good); err != nil {
			return fmt.Errorf("a good logout token was not accepted, so what is written about it proves nothing: %w", err)
		}
	}
	for _, clause := range logoutClauses() {
		for what, token := range clause.tokens(st.provider) {
			given.add(fmt.Sprintf("a logout token with %s (%s)", clause.name, what), token)
			_, _ = sessions.VerifyLogout(ctx, token) // other checks judge the answer
		}
	}
	return nil
}

// gave are the tokens of all logins at the provider.
func (p *Provider) gave() []kit.Secret {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.given)
}
