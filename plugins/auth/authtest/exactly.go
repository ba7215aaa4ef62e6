package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// exact are promises that an adapter breaks which is right about most tokens.
func exact() []check {
	const own = "The identity is the token's own: its subject, its organization, its role, whatever tokens came before or come at the same moment"
	const skew = "a token is good until 30 seconds after its exp and from 30 seconds before its nbf and iat"
	const good, bound = "Verify checks a token and returns its owner", "bound to a key whose possession the request does not prove"
	return []check{
		{name: "a subject comes back as the token has it, whatever characters it has", contract: own, setup: AnyOrganization, run: exactSubjects},
		{name: "a token has its own expiry, near or far", contract: "When the token expires. Never absent from Verify", run: exactExpiries},
		{name: "a token needs no more than the contract says", contract: good, run: plainTokens},
		{name: "groups and claims are the token's own", contract: "The other claims of the token, as one JSON object", run: ownClaims},
		{name: "clocks may differ by 30 seconds and no more", contract: skew, run: exactClocks},
		{name: "a verdict is about the whole token", contract: "A verdict is never remembered beyond that", run: wholeTokens},
		{name: "the hundredth verdict is as true as the first", contract: own, setup: AnyOrganization, run: manyVerdicts},
		{name: "a header or a certificate that does not fit proves no possession of a key", contract: bound, run: provesNothing},
		{name: "metadata returns when its time is over", contract: "Calls come concurrently, each with a deadline", run: metadataInTime},
		{name: "the end of a login returns when its time is over", contract: "Calls come concurrently, each with a deadline", run: loginInTime},
		{name: "metadata is the provider's document, value for value", contract: "as the provider wrote it", run: relaysEveryValue},
	}
}

// subjects are such as adapters are known to change.
func subjects() []string {
	return []string{
		"User_Alice", "user_alice", "USER_ALICE", "user_alice ", " user_alice", "auth0|5f7c8ec7c33c6c004bbafe82", "a/b/../c", "mailto:a@example.com", "a%2Fb",
		"\u00e9", "e\u0301", "用户", "0", "007", "null", `"quoted"`, "a b", "a,b", strings.Repeat("s", 254) + "1", strings.Repeat("s", 254) + "2",
	}
}

func exactSubjects(ctx context.Context, st *stage) error {
	for _, subject := range subjects() {
		id, err := st.verify(ctx, st.provider.Token(map[string]any{"sub": subject}))
		if err != nil {
			return fmt.Errorf("a good token of the subject %q was not accepted: %w", subject, err)
		}
		if id.Subject != subject {
			return fmt.Errorf("a token of the subject %q was answered with the subject %q", subject, id.Subject)
		}
	}
	return nil
}

func exactExpiries(ctx context.Context, st *stage) error {
	for _, left := range []time.Duration{61 * time.Second, 599 * time.Second, 3*time.Hour + 7*time.Second, 25 * time.Hour, 400 * 24 * time.Hour} {
		exp := time.Now().Add(left).Unix()
		id, err := st.verify(ctx, st.provider.Token(map[string]any{"exp": exp}))
		if err != nil {
			return fmt.Errorf("a token that is good for %s was not accepted: %w", left, err)
		}
		if id.ExpiresAt.Unix() != exp {
			return fmt.Errorf("a token that is good for %s, until %s, was answered with the expiry %s", left, time.Unix(exp, 0).UTC(), id.ExpiresAt.UTC())
		}
	}
	return nil
}

// plainTokens are good: what they leave out or have beside the usual is none of the reasons to refuse one.
func plainTokens(ctx context.Context, st *stage) error {
	more := map[string]any{}
	for i := range 60 {
		more[fmt.Sprintf("https://example.com/claim-%d", i)] = map[string]any{"list": []any{i, "text", nil, true}, "nested": map[string]any{"exp": 1, "sub": "nobody"}}
	}
	ago := time.Now().Add(-time.Hour).Unix()
	claims := map[string]map[string]any{
		"without iat": {"iat": nil}, "with nbf in the past": {"nbf": ago}, "issued an hour ago": {"iat": ago}, "without name and e-mail address": {"name": nil, "email": nil, "email_verified": nil},
		"without scopes": {"scope": nil}, "with 60 more claims": more, "with a jti": {"jti": "1"},
	}
	tokens := map[string]string{}
	for what, change := range claims {
		tokens[what] = st.provider.Token(change)
	}
	key, kid := st.provider.key()
	for what, change := range map[string]map[string]any{
		"without typ": {"typ": nil}, "whose typ is at+jwt": {"typ": "at+jwt"}, "whose typ is jwt": {"typ": "jwt"}, "with a header that is not critical": {"x-note": "text"},
	} {
		tokens[what] = compact(changed(header(kid), change), st.provider.Claims(), rs256(key))
	}
	for what, token := range tokens {
		if _, err := st.verify(ctx, token); err != nil {
			return fmt.Errorf("a good token %s was not accepted: %w", what, err)
		}
	}
	return nil
}

func ownClaims(ctx context.Context, st *stage) error {
	for _, groups := range [][]string{{"staff", "admins"}, {"guests"}, nil} {
		change := map[string]any{"groups": groups, "department": strings.Join(groups, "-")}
		if groups == nil {
			change["groups"] = nil
		}
		claims := st.provider.claims([]map[string]any{change})
		id, err := st.verify(ctx, st.provider.Token(claims, map[string]any{"groups": change["groups"]}))
		if err != nil {
			return fmt.Errorf("a good token with the groups %q was not accepted: %w", groups, err)
		}
		for _, group := range id.Groups {
			if !slices.Contains(groups, group) {
				return fmt.Errorf("a token with the groups %q was answered with the groups %q", groups, id.Groups)
			}
		}
		if err := claimsAre(id.Claims, claims); err != nil {
			return err
		}
	}
	return nil
}

// claimsAre compares the claims of an identity with those of its token; the identity may have fewer.
func claimsAre(got json.RawMessage, of map[string]any) error {
	if len(got) == 0 {
		return nil
	}
	var have, want map[string]any
	if err := json.Unmarshal(got, &have); err != nil {
		return fmt.Errorf("the claims of an identity must be one JSON object: %w", err)
	}
	raw, err := json.Marshal(of)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		return err
	}
	for name, value := range have {
		if !reflect.DeepEqual(value, want[name]) {
			return fmt.Errorf("the claim %q of an identity is %v; its token says %v", name, value, want[name])
		}
	}
	return nil
}

// exactClocks tries times that are one to three seconds from the bounds of the window. Where the time that
// passes leads over the bound, a call that took so long proves nothing and is made again.
func exactClocks(ctx context.Context, st *stage) error {
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	for _, c := range []struct {
		claim string
		by    time.Duration
		good  bool
		proof time.Duration // the longest call that proves something
	}{
		{"exp", -28 * time.Second, true, time.Second}, {"exp", -31 * time.Second, false, time.Hour},
		{"nbf", 29 * time.Second, true, time.Hour}, {"nbf", 33 * time.Second, false, 2 * time.Second},
		{"iat", 29 * time.Second, true, time.Hour}, {"iat", 33 * time.Second, false, 2 * time.Second},
	} {
		for ctx.Err() == nil {
			began := time.Now()
			id, err := st.verify(ctx, st.provider.Token(map[string]any{c.claim: began.Add(c.by).Unix()}))
			if time.Since(began) > c.proof {
				continue
			}
			if c.good && err != nil {
				return fmt.Errorf("a token whose %s is %s from now must be accepted: clocks may differ by 30 s; it was answered with %w", c.claim, c.by, err)
			}
			if !c.good {
				if err := mustRefuse(id, err); err != nil {
					return fmt.Errorf("a token whose %s is %s from now %w", c.claim, c.by, err)
				}
			}
			break
		}
	}
	return ctx.Err()
}

// resembling are tokens that are not the good one, each the same in another part.
func (st *stage) resembling(good string) map[string]string {
	parts := strings.Split(good, ".")
	stranger := strings.Split(st.provider.Token(map[string]any{"sub": "user_mallory", "jti": "good"}), ".")
	signature := func(change func([]byte)) string {
		raw := decode(parts[2])
		change(raw)
		return parts[0] + "." + parts[1] + "." + encode(raw)
	}
	return map[string]string{
		"with the first byte of its signature changed": signature(func(raw []byte) { raw[0] ^= 1 }),
		"with the last byte of its signature changed":  signature(func(raw []byte) { raw[len(raw)-1] ^= 1 }),
		"with the claims of another one":               parts[0] + "." + stranger[1] + "." + parts[2],
		"with the signature of another one":            parts[0] + "." + parts[1] + "." + stranger[2],
		"with another header":                          encodeJSON(map[string]any{"alg": "RS256", "kid": "first", "x": 1}) + "." + parts[1] + "." + parts[2],
		"with its claims, signed by somebody else":     parts[0] + "." + parts[1] + "." + encode(rs256(st.provider.keys.forger)([]byte(parts[0]+"."+parts[1]))),
	}
}

// wholeTokens verifies tokens that share a part with one that was found good before, or is at the same moment.
func wholeTokens(ctx context.Context, st *stage) error {
	good := st.provider.Token(map[string]any{"jti": "good"})
	if _, err := st.verify(ctx, good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	bad := st.resembling(good)
	for what, token := range bad {
		id, err := st.verify(ctx, token)
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a token like one that was good, %s, %w", what, err)
		}
	}
	var mu sync.Mutex
	var problems []error
	report := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, fmt.Errorf(format, args...))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := st.verify(ctx, good); err != nil {
				report("of calls at once with tokens that resemble each other, the good one was not accepted: %w", err)
			}
		})
		for what, token := range bad {
			wg.Go(func() {
				id, err := st.verify(ctx, token)
				if err := mustRefuse(id, err); err != nil {
					report("of calls at once with tokens that resemble each other, the one %s %w", what, err)
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(problems...)
}

func manyVerdicts(ctx context.Context, st *stage) error {
	const rounds = 30
	all := crowd()
	tokens := make([]string, len(all))
	for i, who := range all {
		tokens[i] = who.token(st.provider)
	}
	bad := []string{st.provider.Token(map[string]any{"aud": "https://elsewhere.example"}), compact(header("first"), st.provider.Claims(), rs256(st.provider.keys.forger)),
		st.provider.Token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), "not-a-token"}
	for round := range rounds {
		for i, who := range all {
			id, err := st.verify(ctx, tokens[i])
			if err != nil || id.Subject != who.subject {
				return fmt.Errorf("after %d rounds of %d good and %d bad tokens, the one of %s was answered with %q (%w)", round, len(all), len(bad), who.subject, id.Subject, errors.Join(err))
			}
			id, err = st.verify(ctx, bad[(round+i)%len(bad)])
			if err := mustRefuse(id, err); err != nil {
				return fmt.Errorf("after %d rounds of %d good and %d bad tokens, a bad one %w", round, len(all), len(bad), err)
			}
		}
	}
	return nil
}

// provesNothing sends tokens that are bound to a key with requests that prove nothing of it.
func provesNothing(ctx context.Context, st *stage) error {
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	thumb := func(c string) string { return strings.Repeat(c, 43) }
	proof := compact(map[string]any{"typ": "dpop+jwt", "alg": "RS256", "jwk": jwkOf(st.provider.keys.forger, "", "")},
		map[string]any{"jti": "1", "htm": "POST", "htu": "https://ropewalk.example/mcp", "iat": time.Now().Unix()}, rs256(st.provider.keys.forger))
	for _, c := range []struct {
		what    string
		cnf     map[string]any
		headers map[string]string
		shown   string
	}{
		{"no proof", map[string]any{"jkt": thumb("A")}, nil, ""},
		{"a DPoP header that is no proof", map[string]any{"jkt": thumb("A")}, map[string]string{"dpop": "junk"}, ""},
		{"a DPoP proof of another key", map[string]any{"jkt": thumb("A")}, map[string]string{"dpop": proof}, ""},
		{"no certificate", map[string]any{"x5t#S256": thumb("A")}, nil, ""},
		{"another certificate", map[string]any{"x5t#S256": thumb("A")}, nil, thumb("B")},
	} {
		id, err := st.adapter.Verify(ctx, auth.VerifyRequest{Token: st.provider.Token(map[string]any{"cnf": c.cnf}), Audiences: []string{Audience},
			Method: "POST", URL: "https://ropewalk.example/mcp", Headers: c.headers, ClientCertificateSHA256: c.shown})
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a token that is bound to a key, in a request with %s, %w", c.what, err)
		}
	}
	return nil
}

func metadataInTime(ctx context.Context, st *stage) error {
	st.provider.SetFault(Hanging)
	return inTime(ctx, "metadata", func(ctx context.Context) error { _, err := st.adapter.Metadata(ctx); return err })
}

func loginInTime(ctx context.Context, st *stage) error {
	login, a := loginOf(ctx, st), newLogin()
	if login == nil {
		return noLogin()
	}
	code, err := browse(ctx, login, a)
	if err != nil {
		return err
	}
	st.provider.SetFault(Hanging)
	return inTime(ctx, "exchange", func(ctx context.Context) error { _, err := login.Exchange(ctx, a.exchange(code)); return err })
}

// inTime makes a call that the provider does not answer, with a short deadline.
func inTime(ctx context.Context, name string, call func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(short) }()
	select {
	case err := <-done:
		if err == nil || errors.Is(err, plugins.ErrUnauthenticated) || errors.Is(err, plugins.ErrNotFound) {
			return fmt.Errorf("%s of a provider that does not answer must say that it cannot tell; it said: %w", name, errors.Join(err))
		}
	case <-time.After(prompt):
		return fmt.Errorf("%s did not return %s after its context had ended", name, prompt)
	}
	return nil
}

func relaysEveryValue(ctx context.Context, st *stage) error {
	raw, err := st.adapter.Metadata(ctx)
	if err != nil {
		return fmt.Errorf("metadata failed: %w", err)
	}
	got, err := exactJSON(raw)
	if err != nil {
		return fmt.Errorf("metadata is not a JSON object: %w", err)
	}
	written, err := json.Marshal(st.provider.metadata())
	if err != nil {
		return err
	}
	want, err := exactJSON(written)
	if err != nil {
		return err
	}
	for name := range want {
		if value, ok := got[name]; !ok || !reflect.DeepEqual(value, want[name]) {
			return fmt.Errorf("the member %q of metadata must be %v, as the provider wrote it; it is %v", name, want[name], got[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("metadata has the member %q, which the provider did not write", name)
		}
	}
	return nil
}

// exactJSON reads an object without rounding its numbers.
func exactJSON(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var all map[string]any
	err := decoder.Decode(&all)
	return all, err
}
