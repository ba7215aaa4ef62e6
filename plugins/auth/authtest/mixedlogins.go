package authtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// mixedLogins are promises about logins at once, and about id tokens that are wrong in any way that Verify
// refuses.
func mixedLogins() []check {
	const idToken, ends = "The id token is checked as Verify checks a token, for the client id as its audience", "Exchange trades the code that came back for the identity of the person"
	return []check{
		{name: "no id token ends a login that Verify would refuse as a token", contract: idToken, run: refusesIDTokens},
		{name: "an id token without the nonce of the login is refused", contract: "for one whose nonce differs", run: refusesNonces},
		{name: "a login is the person's of the id token, whoever the access token is about", contract: ends, run: believesIDToken},
		{name: "logins at once end each with its own verifier and nonce", contract: "Calls come concurrently, each with a deadline", run: loginsAtOnce},
		{name: "the state comes back whatever characters it has, to where the request says", contract: "The opaque state that comes back with the browser", run: carriesState},
		{name: "code and verifier follow no redirect to another host", contract: "redirects to another host and answers of more than 1 MiB are not used", run: straysNowhere},
	}
}

// inList is the forgery of an id token that is no text.
const inList = "that is a list"

// idForgeries are id tokens that must not end a login, given the claims of a good one.
func (p *Provider) idForgeries() map[string]func(map[string]any) any {
	key, kid := p.key()
	claims := func(change map[string]any) func(map[string]any) any {
		return func(good map[string]any) any { return p.Token(good, change) }
	}
	head := func(change map[string]any, sign func([]byte) []byte) func(map[string]any) any {
		return func(good map[string]any) any { return compact(changed(header(kid), change), good, sign) }
	}
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	return map[string]func(map[string]any) any{
		"of another issuer":               claims(map[string]any{"iss": "https://id.example.com"}),
		"without an expiry":               claims(map[string]any{"exp": nil}),
		"that is good from an hour on":    claims(map[string]any{"nbf": at(time.Hour)}),
		"that is issued in an hour":       claims(map[string]any{"iat": at(time.Hour)}),
		"without a subject":               claims(map[string]any{"sub": nil}),
		"without an audience":             claims(map[string]any{"aud": nil}),
		"for the server's own audience":   claims(map[string]any{"aud": Audience}),
		"for a client whose id is longer": claims(map[string]any{"aud": ClientID + "2"}),
		"signed with none":                head(map[string]any{"alg": "none"}, func([]byte) []byte { return nil }),
		"signed with the client id":       head(map[string]any{"alg": "HS256"}, hs256([]byte(ClientID))),
		"signed with another key":         head(nil, rs256(p.keys.forger)),
		"whose key id nobody has":         head(map[string]any{"kid": "nobody"}, rs256(p.keys.forger)),
		"with critical headers":           head(map[string]any{"crit": []string{"exp"}, "exp": 1}, rs256(key)),
		inList:                            func(good map[string]any) any { return []any{p.Token(good)} },
		"that is text":                    func(map[string]any) any { return "not a token" },
	}
}

// forging lets the provider give id tokens made by forge; nil ends it.
func (p *Provider) forging(forge func(map[string]any) any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgeIDToken = forge
}

// refusesForged does a login for each way to forge its id token.
func refusesForged(ctx context.Context, st *stage, forgeries map[string]func(map[string]any) any) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	if _, _, err := finish(ctx, st, NoFault); err != nil {
		return fmt.Errorf("a good login failed, so refusing others proves nothing: %w", err)
	}
	for _, what := range slices.Sorted(maps.Keys(forgeries)) {
		st.provider.forging(forgeries[what])
		id, _, err := finish(ctx, st, NoFault)
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a login with an id token %s %w", what, err)
		}
	}
	return nil
}

func refusesIDTokens(ctx context.Context, st *stage) error {
	return refusesForged(ctx, st, st.provider.idForgeries())
}

func refusesNonces(ctx context.Context, st *stage) error {
	nonce := func(change func(string) any) func(map[string]any) any {
		return func(good map[string]any) any {
			own, _ := good["nonce"].(string)
			return st.provider.Token(good, map[string]any{"nonce": change(own)})
		}
	}
	return refusesForged(ctx, st, map[string]func(map[string]any) any{
		"without a nonce":                 nonce(func(string) any { return nil }),
		"with an empty nonce":             nonce(func(string) any { return "" }),
		"with the start of the nonce":     nonce(func(own string) any { return own[:len(own)-1] }),
		"with more than the nonce":        nonce(func(own string) any { return own + "x" }),
		"with the nonce in small letters": nonce(func(own string) any { return strings.ToLower(own) }),
		"with the nonce in a list":        nonce(func(own string) any { return []string{own} }),
	})
}

func believesIDToken(ctx context.Context, st *stage) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	id, _, err := finish(ctx, st, OtherAccessToken)
	if err != nil {
		return nil //nolint:nilerr // refusing a login whose tokens are of two people is no worse
	}
	if id.Subject != "user_alice" || id.Email == "mallory@example.com" || id.DisplayName == "Mallory" {
		return fmt.Errorf("the id token of a login is user_alice's, its access token somebody else's; the identity is %q with the name %q and the e-mail address %q", id.Subject, id.DisplayName, id.Email)
	}
	return nil
}

func loginsAtOnce(ctx context.Context, st *stage) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	attempts, codes := make([]attempt, 6), make([]string, 6)
	for i := range attempts { // all begin before the first one ends
		var err error
		attempts[i] = newLogin()
		if codes[i], err = browse(ctx, login, attempts[i]); err != nil {
			return err
		}
	}
	errs := make([]error, len(attempts))
	var wg sync.WaitGroup
	for i := range attempts {
		wg.Go(func() {
			if i%3 == 2 { // one whose nonce is another login's
				id, err := login.Exchange(ctx, attempt{nonce: attempts[0].nonce, verifier: attempts[i].verifier}.exchange(codes[i]))
				errs[i] = mustRefuse(id, err)
				return
			}
			_, errs[i] = login.Exchange(ctx, attempts[i].exchange(codes[i]))
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("of %d logins at once, number %d, whose nonce is %s: %w", len(attempts), i, map[bool]string{true: "another one's", false: "its own"}[i%3 == 2], err)
		}
	}
	return nil
}

func carriesState(ctx context.Context, st *stage) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	for _, odd := range []string{"a&state=b", "a b+c%20d", "é ü 用", "#fragment", `"<>'`, strings.Repeat("s", 1000)} {
		a := newLogin()
		a.state = odd + rand.Text()
		if _, err := browse(ctx, login, a); err != nil {
			return fmt.Errorf("with the state %q: %w", start(a.state), err)
		}
	}
	a := newLogin()
	req := a.request()
	req.RedirectURI = RedirectURI + "/second"
	address, err := login.AuthorizeURL(ctx, req)
	if err != nil {
		return fmt.Errorf("the start of a login failed: %w", err)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the start of a login is no URL: %w", err)
	}
	if got := parsed.Query().Get("redirect_uri"); got != req.RedirectURI {
		return fmt.Errorf("the request says that the browser comes back to %q; the URL says %q", req.RedirectURI, got)
	}
	return nil
}

func straysNowhere(ctx context.Context, st *stage) error {
	if loginOf(ctx, st) == nil {
		return noLogin()
	}
	id, _, err := finish(ctx, st, TokenElsewhere)
	if n := st.provider.strayed.Load(); n > 0 {
		return errors.New("the token endpoint redirected to another host, and that host was sent the code and its verifier")
	}
	if err == nil {
		return fmt.Errorf("the token endpoint redirected to another host; the login ended as %q's", id.Subject)
	}
	return nil
}
