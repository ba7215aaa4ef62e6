package authtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// algorithms are promises about what tokens may be signed with.
func algorithms() []check {
	const named = "The signature algorithms it accepts, such as \"RS256\" and \"ES256\"; empty means RS256 alone"
	list := []check{{name: "an adapter accepts RS256", contract: "An adapter of OpenID providers accepts RS256 unless its settings say otherwise", run: acceptsRS256}}
	for _, algorithm := range []string{"ES256", "EdDSA"} {
		list = append(list, check{name: "tokens signed with " + algorithm + " are accepted exactly when describe names it", contract: named, run: asNamed(algorithm)})
	}
	return list
}

func named(ctx context.Context, st *stage) ([]string, error) {
	d, err := st.adapter.Describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe failed: %w", err)
	}
	if len(d.Algorithms) == 0 {
		return []string{"RS256"}, nil
	}
	return d.Algorithms, nil
}

func acceptsRS256(ctx context.Context, st *stage) error {
	names, err := named(ctx, st)
	if err == nil && !slices.Contains(names, "RS256") {
		return fmt.Errorf("describe names the algorithms %q; RS256 must be one", names)
	}
	return err
}

func asNamed(algorithm string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		names, err := named(ctx, st)
		if err != nil {
			return err
		}
		id, err := st.verify(ctx, st.provider.TokenWith(algorithm))
		if slices.Contains(names, algorithm) {
			if err != nil {
				return fmt.Errorf("describe names %s; a good token that the provider signed with it was not accepted: %w", algorithm, err)
			}
			return nil
		}
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("describe does not name %s; a token signed with it %w", algorithm, err)
		}
		return nil
	}
}

// lying are promises about providers that are slow, broken for a while, or say odd things.
func lying() []check {
	const keys = "Keys that were read stay in use while the provider is away or answers something else than a key set"
	return []check{
		{name: "a key that the provider added beside the first is found, and the first stays good", contract: "A key that the provider added is found by the first token that names it", run: keepsBothKeys},
		{name: "keys that cannot be used are passed over", contract: "Keys in the set that the adapter cannot use are passed over", run: passesOverOddKeys},
		{name: "a key set that is no JSON does not replace good keys", contract: keys, run: keepsKeysWhile(Junk)},
		{name: "a key set that never ends does not replace good keys", contract: keys, run: keepsKeysWhile(Huge)},
		{name: "a provider that takes a second to answer is waited for", contract: "A provider that is slow is waited for until the deadline of the call", run: waitsForSlow},
		{name: "a provider that comes back is asked again", contract: "Once the provider is back, a good token is accepted within 15 seconds", run: asksAgain},
		{name: "metadata about another issuer is not relayed", contract: "Documents about another issuer, redirects to another host and answers of more than 1 MiB are not used", run: relaysNoOther},
		{name: "metadata is unavailable while the provider is away", contract: "UNAVAILABLE when the document could not be read", run: metadataCannotTell},
		{name: "authorization servers are absolute URLs", contract: "The authorization servers for the RFC 9728 document; usually the issuer alone", run: namesServers},
	}
}

func keepsBothKeys(ctx context.Context, st *stage) error {
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	st.provider.Add()
	for _, token := range []string{st.provider.SecondToken(), st.provider.Token(), st.provider.SecondToken(map[string]any{"jti": "another"})} {
		if _, err := st.verify(ctx, token); err != nil {
			return fmt.Errorf("with two keys at the provider, a token of one of them was not accepted: %w", err)
		}
	}
	return nil
}

func passesOverOddKeys(ctx context.Context, st *stage) error {
	st.provider.SetFault(OddKeys)
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("with keys of unknown types and without values in the key set, a good token was not accepted: %w", err)
	}
	return nil
}

func keepsKeysWhile(fault Fault) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if _, err := st.verify(ctx, st.samples.Good); err != nil {
			return fmt.Errorf("a good token was not accepted: %w", err)
		}
		st.provider.SetFault(fault)
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, _ = st.verify(short, compact(header("unknown"), st.provider.Claims(), zeros)) // which makes the adapter ask
		cancel()
		if _, err := st.verify(ctx, st.provider.Token(map[string]any{"jti": "another"})); err != nil {
			return fmt.Errorf("after the provider gave no key set, a good token of a known key was not accepted: %w", err)
		}
		return nil
	}
}

func waitsForSlow(ctx context.Context, st *stage) error {
	st.provider.SetFault(Slow)
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("with a second for each answer of the provider and 8 s for the call, a good token was not accepted: %w", err)
	}
	return nil
}

func asksAgain(ctx context.Context, st *stage) error {
	st.provider.SetFault(Hanging)
	if !st.giveUp(ctx) {
		return kit.Skip("the adapter needs nothing of its provider")
	}
	st.provider.SetFault(NoFault)
	for until := time.Now().Add(15 * time.Second); ; {
		short, cancel := context.WithTimeout(ctx, 5*time.Second) // what never answers must not end the check
		_, err := st.verify(short, st.provider.Token())
		cancel()
		if err == nil {
			return nil
		}
		if errors.Is(err, plugins.ErrUnauthenticated) {
			return fmt.Errorf("a good token was refused while the provider came back: %w", err)
		}
		if time.Now().After(until) {
			return fmt.Errorf("15 s after the provider came back, a good token was not accepted: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// giveUp makes many calls at once whose time is over before the provider answers: what they used must be
// free again when they are over. It reports whether all of them failed.
func (st *stage) giveUp(ctx context.Context) bool {
	const calls = 64
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	var accepted atomic.Bool
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if _, err := st.verify(short, st.samples.Good); err == nil {
				accepted.Store(true)
			}
		})
	}
	wg.Wait()
	return !accepted.Load()
}

func relaysNoOther(ctx context.Context, st *stage) error {
	st.provider.SetFault(OtherIssuer)
	raw, err := st.adapter.Metadata(ctx)
	if err == nil {
		return fmt.Errorf("the provider's document is about another issuer; it was relayed: %s", raw)
	}
	return mustBeAway(err, "metadata whose document is about another issuer")
}

func metadataCannotTell(ctx context.Context, st *stage) error {
	st.provider.SetFault(Away)
	_, err := st.adapter.Metadata(ctx)
	return mustBeAway(err, "metadata of a provider that is away")
}

func mustBeAway(err error, what string) error {
	if !errors.Is(err, plugins.ErrUnavailable) {
		return fmt.Errorf("%s must be answered with unavailable; it was with: %w", what, errors.Join(err))
	}
	return nil
}

func namesServers(ctx context.Context, st *stage) error {
	d, err := st.adapter.Describe(ctx)
	if err != nil {
		return fmt.Errorf("describe failed: %w", err)
	}
	if len(d.AuthorizationServers) == 0 {
		return errors.New("an adapter of a provider must name its authorization server")
	}
	for _, server := range d.AuthorizationServers {
		if !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://") {
			return fmt.Errorf("the authorization server %q is no absolute URL", server)
		}
	}
	return nil
}

// lyingLogins are promises about logins whose provider answers wrong.
func lyingLogins() []check {
	const idToken = "The id token is checked as Verify checks a token, for the client id as its audience"
	return []check{
		{name: "a login whose id token is for another client is refused", contract: idToken, run: refusesLogin(ForAnotherClient)},
		{name: "a login whose id token has expired is refused", contract: idToken, run: refusesLogin(OldIDToken)},
		{name: "a login whose id token somebody else signed is refused", contract: idToken, run: refusesLogin(ForgedIDToken)},
		{name: "a login without an id token is refused", contract: "for a missing or bad id token", run: refusesLogin(NoIDToken)},
		{name: "a login of another organization is refused", contract: idToken, run: refusesLogin(OtherOrgIDToken)},
		{name: "a code is good once", contract: "A code is good once", run: codeIsGoodOnce},
		{name: "a login is unavailable while the provider answers 500", contract: "UNAVAILABLE when the provider cannot be asked", run: loginCannotTellBroken},
		{name: "no error of a login repeats the code or the verifier", contract: "No token, code or secret appears in an error or a log line", run: repeatsNoCode},
		{name: "names of another subject at the UserInfo endpoint are not used", contract: "counts only if it is about the subject of the id token", run: usesNoOtherUserInfo},
		{name: "a role at the UserInfo endpoint makes nobody more than a member", contract: "without a role in the token nobody is more than a member", setup: WithRoles, run: takesNoRoleOfUserInfo},
	}
}

// finish does a whole login at a provider that has a fault when the code is exchanged.
func finish(ctx context.Context, st *stage, fault Fault) (auth.Identity, auth.ExchangeRequest, error) {
	login := loginOf(ctx, st)
	if login == nil {
		return auth.Identity{}, auth.ExchangeRequest{}, noLogin()
	}
	a := newLogin()
	code, err := browse(ctx, login, a)
	if err != nil {
		return auth.Identity{}, auth.ExchangeRequest{}, kit.Failf("before the fault: %w", err)
	}
	st.provider.SetFault(fault)
	req := a.exchange(code)
	id, err := login.Exchange(ctx, req)
	return id, req, err
}

func refusesLogin(fault Fault) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if fault == OtherOrgIDToken && st.limits.NoOrganization {
			return kit.Skip("the settings name no organization that alone is let in")
		}
		if loginOf(ctx, st) == nil {
			return noLogin()
		}
		id, _, err := finish(ctx, st, fault)
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("the login %w", err)
		}
		return nil
	}
}

func codeIsGoodOnce(ctx context.Context, st *stage) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	_, req, err := finish(ctx, st, NoFault)
	if err != nil {
		return fmt.Errorf("the end of a good login failed: %w", err)
	}
	id, err := login.Exchange(ctx, req)
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a code that was exchanged before %w", err)
	}
	return nil
}

func loginCannotTellBroken(ctx context.Context, st *stage) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	id, _, err := finish(ctx, st, Broken)
	if err := mustNotTell(id, err); err != nil {
		return fmt.Errorf("a login whose provider answers 500 %w", err)
	}
	return nil
}

func repeatsNoCode(ctx context.Context, st *stage) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	for _, fault := range []Fault{ForgedIDToken, Broken} {
		st.provider.SetFault(NoFault)
		_, req, err := finish(ctx, st, fault)
		if err == nil {
			continue // whether it must be refused is another check's question
		}
		for _, secret := range []string{req.Code, req.CodeVerifier, req.Nonce} {
			if secret != "" && strings.Contains(err.Error(), secret) {
				return errors.New("the error of a login holds its code, its verifier or its nonce")
			}
		}
	}
	return nil
}

func takesNoRoleOfUserInfo(ctx context.Context, st *stage) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	id, _, err := finish(ctx, st, NamelessIDToken) // name and address must be asked for
	if err != nil {
		return fmt.Errorf("a login without name and e-mail address in its id token failed: %w", err)
	}
	if err := mustHaveRole(id, "member"); err != nil {
		return fmt.Errorf("a login whose id token has no role, and whose UserInfo says owner, %w", err)
	}
	return nil
}

func usesNoOtherUserInfo(ctx context.Context, st *stage) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	id, _, err := finish(ctx, st, OtherUserInfo)
	if err != nil {
		return fmt.Errorf("a login without name and e-mail address failed: %w", err)
	}
	if id.Email == "alice@example.com" || id.DisplayName == "Alice" {
		return fmt.Errorf("the UserInfo endpoint answered for another subject; its name %q and address %q were used", id.DisplayName, id.Email)
	}
	return nil
}
