package authtest

import (
	"context"
	"crypto"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// attempt is what the server remembers about one login.
type attempt struct{ redirect, state, nonce, verifier string }

func newAttempt() attempt {
	return attempt{RedirectURI, rand.Text(), rand.Text(), rand.Text() + rand.Text()}
}

func (a attempt) request() auth.AuthorizeRequest {
	return auth.AuthorizeRequest{RedirectURI: a.redirect, State: a.state, Nonce: a.nonce, CodeChallenge: encode(hashed(crypto.SHA256, []byte(a.verifier)))}
}

func (a attempt) exchange(code string) auth.ExchangeRequest {
	return auth.ExchangeRequest{RedirectURI: a.redirect, Code: code, Nonce: a.nonce, CodeVerifier: a.verifier}
}

// browse plays the browser: it follows the adapter's URL and returns the code from the redirect.
func (st *stage) browse(ctx context.Context, a attempt) string {
	ctx, cancel := context.WithTimeout(ctx, st.patience())
	defer cancel()
	fail := func(answered, demanded, sentence string) {
		kit.Reject(answered, demanded, sentence, fmt.Sprintf("AuthorizeUrl with the state %q", clip(a.state, 60)))
	}
	login, ok := st.adapter.(auth.Login)
	if !ok {
		fail("no such method", "the URL of a login page", sHasLogin)
	}
	address, err := login.AuthorizeURL(ctx, a.request())
	if err != nil {
		fail(describeResult(auth.Identity{}, err), "the URL of a login page", sHasLogin)
	}
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, st.provider.Issuer()) {
		fail(address, "a URL at the provider", sAuthorize)
	}
	if got := u.Query(); got.Get("redirect_uri") != a.redirect || got.Get("nonce") != a.nonce || got.Get("state") != a.state {
		fail(address, fmt.Sprintf("redirect_uri=%q, state=%q and nonce=%q from the request", a.redirect, a.state, a.nonce), sAuthorize)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		fail(address, "a URL at the provider", sAuthorize)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		fail(address, "a URL at the provider: "+err.Error(), sAuthorize)
	}
	defer func() { _ = resp.Body.Close() }()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		fail(address, fmt.Sprintf("a request for a code with PKCE S256, client_id, redirect_uri and the scope openid (the provider returned %d)", resp.StatusCode), sAuthorize)
	}
	return back.Query().Get("code")
}

// exchange completes a login and compares the result with the model's.
func (st *stage) exchange(ctx context.Context, limit time.Duration, req auth.ExchangeRequest, demanded func(from, to time.Time) demand) (auth.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from := time.Now()
	id, err := st.adapter.(auth.Login).Exchange(ctx, req) //nolint:forcetypeassert // browse has checked the type
	for what, secret := range map[string]string{"the login code": req.Code, "the code verifier": req.CodeVerifier} {
		st.given.error(what, secret, err)
	}
	st.given.note("the renewal of a login", id.Renewal.Reveal())
	d := demanded(from, time.Now())
	return id, d.check(ctx, id, err)
}

// ofLogin returns what the contract requires of an exchange that the provider responded to.
func (st *stage) ofLogin(began attempt, nonce string) func(from, to time.Time) demand {
	return func(from, to time.Time) demand {
		d := st.world.exchange(st.provider.idToken(began.nonce), nonce, from, to)
		st.judgeLogin(&d, st.provider.now())
		return d
	}
}

// judgeLogin makes the demand check the identity against the id token, and against what UserInfo says about its
// subject.
func (st *stage) judgeLogin(d *demand, now state) {
	if d.clause != "" {
		return
	}
	subject, _ := d.claims["sub"].(string)
	claims := changed(map[string]any{"scope": "openid profile"}, d.claims)
	userInfo := now.more["sub"] == nil || now.more["sub"] == subject
	if now.plain && userInfo {
		claims = changed(map[string]any{"name": nameOf(subject), "email": emailOf(subject), "email_verified": true}, claims)
	}
	d.judge = func(id auth.Identity) (string, string) {
		exp, _ := seconds(claims["exp"])
		id.ExpiresAt, id.Claims = exp, nil // they may include claims of the access token
		if problem, sentence := st.world.judgeIdentity(claims, id); problem != "" {
			if sentence == sEmail || sentence == sVouches || sentence == sRole || sentence == sGroups {
				sentence = sUserInfo
			}
			return problem, sentence
		}
		if sid, _ := claims["sid"].(string); st.Rechecks && id.SessionID != sid {
			return fmt.Sprintf("the session %q", sid), sNamed
		}
		return "", ""
	}
}

// checkLogins tries histories of logins, each wrong in some way, and of concurrent logins.
func checkLogins(ctx context.Context, s Subject) {
	setups := []Setup{WithRoles, OneOrganization, AnyOrganization}
	const each = 8
	rows := s.idRows(ctx)
	n := max(4, len(rows)/each)
	s.trial.Cover("%d histories of logins, %d id tokens", n, len(rows))
	kit.AtOnce(ctx, n, workers/2, func(ctx context.Context, i int) {
		s.staged(ctx, []Setup{setups[i%len(setups)], AnyOrganization, OneOrganization}, func(st *stage) {
			st.logins(ctx, s.trial.Rand(i), rows[min(i*each, len(rows)):min((i+1)*each, len(rows))])
		})
	})
}

// idRows returns the rows of id tokens to try: every value that makes a token bad, at least on its own, and pairs of
// the other values.
func (s Subject) idRows(ctx context.Context) (rows []row) {
	s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) {
		table := st.provider.idTable()
		rows = st.rows("id tokens", 2, table, func(r row) demand {
			now := time.Now()
			return st.world.exchange(r.change(st.provider.idDraft(), table).token(), "nonce", now, now)
		})
		rows = rows[:min(len(rows), s.trial.Count(2000))]
	})
	return rows
}

// idDraft returns a valid id token.
func (p *Provider) idDraft() *draft {
	d := p.draft()
	d.claims["aud"], d.claims["nonce"] = p.ClientID, "nonce"
	return d
}

// logins performs logins one after another, each wrong in one way, and many at the same time. The order is random.
func (st *stage) logins(ctx context.Context, chance *mathrand.Rand, rows []row) {
	p := st.provider
	table := p.idTable()
	login := func(step string, prepare func(a *state), change func(req *auth.ExchangeRequest), want *demand) {
		a := newAttempt()
		a.state = []string{"a&state=b", "a b+c%20d", "é ü 用", "#fragment", `"<>'`, strings.Repeat("s", 1000)}[chance.IntN(6)] + a.state
		a.redirect += []string{"", "/second"}[chance.IntN(2)]
		before := p.now()
		p.set(func(acc *state) {
			acc.subject, acc.refreshes = fmt.Sprint("user_", chance.IntN(5)), chance.IntN(2) == 0
			prepare(acc)
		})
		defer p.set(func(acc *state) {
			acc.forge, acc.plain, acc.more, acc.otherSubject = before.forge, before.plain, before.more, before.otherSubject
		})
		req := a.exchange(st.browse(ctx, a))
		if change != nil {
			change(&req)
		}
		demanded := st.ofLogin(a, req.Nonce)
		if want != nil {
			demanded = func(time.Time, time.Time) demand { return *want }
		}
		_, f := st.exchange(ctx, st.patience(), req, demanded)
		if kit.Must(kit.After(f, "begin a login", "Exchange its code: "+step)); want != nil {
			return
		}
		twice := refused(Form, "the code was exchanged before")
		twice.sentence = sOnce
		_, f = st.exchange(ctx, st.patience(), req, func(time.Time, time.Time) demand { return twice })
		kit.Must(kit.After(f, "begin a login", "Exchange its code: "+step, "Exchange the same code again"))
	}
	bad := refused(Form, "the provider refuses the code")
	bad.sentence = sBadLogin
	other := st.browse(ctx, newAttempt())
	usual := func(*state) {}
	steps := []func(){func() { st.loginFails(ctx, chance) }, func() { st.loginsAtOnce(ctx) }}
	for _, step := range []struct {
		name    string
		prepare func(a *state)
		change  func(r *auth.ExchangeRequest)
		want    *demand
	}{
		{"default values", usual, nil, nil},
		{"with another nonce", usual, func(r *auth.ExchangeRequest) { r.Nonce = rand.Text() }, nil},
		{"with another verifier", usual, func(r *auth.ExchangeRequest) { r.CodeVerifier = rand.Text() + rand.Text() }, &bad},
		{"with a code that was never issued", usual, func(r *auth.ExchangeRequest) { r.Code = "4/" + rand.Text() + "+=" }, &bad},
		{"with the code of another login", usual, func(r *auth.ExchangeRequest) { r.Code = other }, &bad},
		{"without an id token", func(a *state) { a.forge = func(map[string]any) any { return nil } }, nil, nil},
		{"with an id token in a list", func(a *state) { a.forge = func(c map[string]any) any { return []string{p.Token(c)} } }, nil, nil},
		{"only UserInfo has the name and address", func(a *state) { a.plain = true }, nil, nil},
		{"UserInfo is about another subject", func(a *state) {
			a.plain, a.more = true, map[string]any{"sub": "user_mallory", "name": "Mallory", "email": "mallory@example.com"}
		}, nil, nil},
		{"the access token is somebody else's", func(a *state) { a.otherSubject = true }, nil, nil},
		{"the access token is somebody else's, name and address are missing", func(a *state) { a.otherSubject, a.plain = true, true }, nil, nil},
	} {
		steps = append(steps, func() { login(step.name, step.prepare, step.change, step.want) })
	}
	for _, r := range rows {
		steps = append(steps, func() {
			name := r.change(p.idDraft(), table).name
			login("with the id token: default values"+name, func(a *state) {
				a.forge = func(claims map[string]any) any {
					d := p.draft()
					d.claims = claims
					return r.change(d, table).token()
				}
			}, nil, nil)
		})
	}
	chance.Shuffle(len(steps), func(i, k int) { steps[i], steps[k] = steps[k], steps[i] })
	for _, step := range steps {
		step()
	}
}

// loginFails performs a login and makes the provider fail during the exchange.
func (st *stage) loginFails(ctx context.Context, chance *mathrand.Rand) {
	p := st.provider
	want := demand{allowed: cannotTell, sentence: sUnreachable}
	at := []string{tokenPath, userInfoPath}[chance.IntN(2)]
	if at == userInfoPath { // which the adapter need not ask
		want = demand{allowed: accept | cannotTell, sentence: sBadLogin}
	}
	failing := slices.DeleteFunc(outagesOf(at), func(f *fault) bool { return f.name == "returns 404" })
	f := failing[chance.IntN(len(failing))]
	want.why = "the endpoint " + at + " " + f.name
	a := newAttempt()
	code := st.browse(ctx, a)
	p.set(func(acc *state) { acc.plain = at == userInfoPath })
	defer p.set(func(acc *state) { acc.plain = false })
	p.setFault(f)
	began := time.Now()
	_, failure := st.exchange(ctx, time.Second, a.exchange(code), func(time.Time, time.Time) demand { return want })
	took := time.Since(began)
	p.setFault(nil)
	switch {
	case p.now().strayed > 0:
		failure = kit.NewFailure("it sent the login's secrets to the other host", "no request to another host", sNotUsed)
	case failure == nil && took > time.Second+st.prompt():
		failure = kit.NewFailure(fmt.Sprintf("after %s", took.Round(time.Second)), "a response soon after the deadline of 1 s", sConcurrent)
	}
	kit.Must(kit.After(failure, "begin a login", want.why, "Exchange the code, with a deadline of 1 s"))
}

// loginsAtOnce starts logins for many people, and then completes all of them at once.
func (st *stage) loginsAtOnce(ctx context.Context) {
	const n = 12
	attempts, codes := make([]attempt, n), make([]string, n)
	for i := range attempts {
		attempts[i] = newAttempt()
		st.provider.set(func(a *state) { a.subject, a.refreshes = fmt.Sprint("user_", i), true })
		codes[i] = st.browse(ctx, attempts[i])
	}
	kit.AtOnce(ctx, n, n, func(ctx context.Context, i int) {
		req := attempts[i].exchange(codes[i])
		want := demand{allowed: accept, why: "it is valid", sentence: sExchange, judge: func(id auth.Identity) (string, string) {
			if subject := fmt.Sprint("user_", i); id.Subject != subject || id.Email != "" && id.Email != emailOf(subject) {
				return fmt.Sprintf("the subject %q with its own e-mail address", subject), sOwn
			}
			return "", ""
		}}
		step := "Exchange the code of " + fmt.Sprint("user_", i)
		if i%4 == 3 {
			req.Nonce = attempts[i-1].nonce
			want = refused(Form, "the nonce belongs to another login")
			want.sentence, step = sBadLogin, step+" with the nonce of another login"
		}
		_, f := st.exchange(ctx, st.patience(), req, func(time.Time, time.Time) demand { return want })
		kit.Must(kit.After(f, fmt.Sprintf("begin %d logins", n), step+", all at once"))
	})
}
