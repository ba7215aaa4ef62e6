package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

const workers = 16 // concurrent calls

// verdicts verifies tokens that cover pairs of property values, in every setup, concurrently and in random order. A
// token with the wrong text or signature follows the valid token that it resembles, and some valid tokens are verified
// again for other audiences.
func verdicts(ctx context.Context, s Subject) {
	if s.Keys == nil {
		sampleVerdicts(ctx, s)
		return
	}
	for i, setup := range s.setups(OneOrganization, WithRoles, AnyOrganization) {
		st, err := s.open(ctx, setup, nil)
		if _, none := errors.AsType[noSetting](err); none {
			continue
		}
		kit.Must(err)
		table := st.provider.table()
		chance := s.trial.Rand(i)
		rows := st.rows("tokens", 8, table, func(r row) demand {
			d, now := r.draft(st.provider, table), time.Now()
			return st.world.verify(auth.VerifyRequest{Token: d.token(), Audiences: d.audiences}, now, now)
		})
		if i > 0 { // the setups differ only in organizations and roles
			rows = slices.DeleteFunc(rows, func(r row) bool { return r[organizationAt]+r[roleAt] == 0 })
			rows = rows[:min(len(rows), s.trial.Count(800))]
		}
		clauses := map[Clause]int{}
		st.play(func() {
			st.tryRows(ctx, table, rows, clauses, chance.Uint64())
			st.tryTexts(ctx, st.provider.Token())
		})
		s.trial.Cover("setup %d: %d tokens with %d properties, %d kinds of refusal", setup, len(rows), len(table), len(clauses))
	}
	if len(s.setups(OneOrganization)) == 0 && !s.Limits.OneOrganization {
		kit.Must(s.lacks(OneOrganization))
	}
}

func (st *stage) tryRows(ctx context.Context, table []property, rows []row, clauses map[Clause]int, seed uint64) {
	var mu sync.Mutex
	kit.AtOnce(ctx, len(rows), workers, func(ctx context.Context, i int) {
		chance := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // must be reproducible
		d := rows[i].draft(st.provider, table)
		req := auth.VerifyRequest{Token: d.token(), Audiences: d.audiences}
		twin := *d
		twin.seal, twin.spell = nil, func(text string) string { return text }
		if other := twin.token(); other != req.Token && (d.seal != nil || d.spell("x") != "x" || chance.IntN(8) == 0) {
			st.verify(ctx, auth.VerifyRequest{Token: other, Audiences: d.audiences}, "verify the valid token that it resembles: default values"+d.name)
		}
		var accepted bool
		step := "verify a token: default values" + d.name
		st.call(ctx, st.patience(), req, func(demand *demand, _ time.Time) {
			mu.Lock()
			defer mu.Unlock()
			clauses[demand.clause]++
			accepted = demand.allowed == accept
		}, step)
		if accepted && chance.IntN(3) == 0 {
			req.Audiences = []string{"https://elsewhere.invalid", st.provider.Audience + "/other"}
			st.verify(ctx, req, step, "verify it again for other audiences")
		}
	})
}

// tryTexts sends strings that are not tokens, and strings that differ slightly from a valid token.
func (st *stage) tryTexts(ctx context.Context, good string) {
	texts := junk()
	if st.provider != nil {
		texts = append(texts, st.provider.malformed()...)
	}
	for _, spelling := range spellings().values {
		d := &draft{}
		if spelling.set(d); d.spell != nil {
			texts = append(texts, d.spell(good))
		}
	}
	kit.AtOnce(ctx, 2*len(texts), workers, func(ctx context.Context, i int) {
		req := auth.VerifyRequest{Token: texts[i/2]}
		if i%2 == 0 {
			req.Audiences = []string{"https://elsewhere.invalid"}
		}
		st.verify(ctx, req, fmt.Sprintf("verify the text %q", clip(texts[i/2], 60)))
	})
}

// sampleVerdicts does the same with an author's samples, to the extent that they allow it.
func sampleVerdicts(ctx context.Context, s Subject) {
	s.staged(ctx, []Setup{AnyOrganization}, func(st *stage) {
		if s.Samples == nil {
			st.tryTexts(ctx, "an-opaque-token-that-nobody-issued-0123456789")
			kit.Must(kit.CannotJudge("there are no tokens to try: put ${issuer} in the settings of an adapter for OpenID providers, or give --samples"))
		}
		judged := map[Clause]bool{Form: true, Signature: true, "": true}
		var reqs []auth.VerifyRequest
		for _, good := range s.Samples.Good {
			audiences, _ := texts(good.Claims["aud"])
			reqs = append(reqs, auth.VerifyRequest{Token: good.Token}, auth.VerifyRequest{Token: good.Token, Audiences: append([]string{"https://other.example"}, audiences...)})
			if len(audiences) > 0 {
				reqs = append(reqs, auth.VerifyRequest{Token: good.Token, Audiences: []string{"https://elsewhere.invalid"}})
			}
		}
		for _, bad := range s.Samples.Bad {
			audiences, _ := texts(s.Samples.Good[0].Claims["aud"])
			reqs = append(reqs, auth.VerifyRequest{Token: bad.Token, Audiences: audiences})
		}
		issued := s.Samples.wishes(ctx, s.trial.Count(120), s.trial.Rand(0))
		reqs = append(reqs, issued...)
		var mu sync.Mutex
		kit.AtOnce(ctx, len(reqs), workers, func(ctx context.Context, i int) {
			step := "verify " + s.Samples.called(reqs[i].Token)
			st.call(ctx, s.patience(), reqs[i], func(d *demand, _ time.Time) {
				mu.Lock()
				defer mu.Unlock()
				judged[d.clause] = true
			}, fmt.Sprintf("%s for %q", step, reqs[i].Audiences))
		})
		for _, good := range s.Samples.Good {
			st.tryTexts(ctx, good.Token)
		}
		var missing []string
		for _, clause := range clauses() {
			if !judged[clause] && !slices.Contains(s.Samples.Lacks, clause) {
				missing = append(missing, fmt.Sprintf("%q", clause))
			}
		}
		s.trial.Cover("%d samples, %d issued tokens", len(s.Samples.Good)+len(s.Samples.Bad), len(issued))
		if len(missing) > 0 {
			kit.Must(kit.CannotJudge("no sample token was wrong in these ways: %s; in --samples, add such tokens to bad, or list in lacks the ways in which your tokens cannot be wrong", strings.Join(missing, ", ")))
		}
	})
}

// called returns the name of a token in reports.
func (s *Samples) called(token string) string {
	for _, bad := range s.Bad {
		if bad.Token == token {
			return fmt.Sprintf("the sample %q", bad.Name)
		}
	}
	if wish, ok := s.wish(token); ok {
		return "the token issued as " + clip(string(must(json.Marshal(wish))), 300)
	}
	return "a valid sample"
}

// wishes gets tokens issued with various combinations of fields, and returns requests with them. Tokens that the author
// cannot issue are left out.
func (s *Samples) wishes(ctx context.Context, n int, chance *rand.Rand) (reqs []auth.VerifyRequest) {
	if s.Issue == nil {
		return nil
	}
	wishes := make([]Wish, n)
	pick := func(all ...string) string { return all[chance.IntN(len(all))] }
	audience := "https://ropewalk.example/mcp"
	if held, _ := texts(s.Good[0].Claims["aud"]); len(held) > 0 {
		audience = held[0]
	}
	organization, _ := s.Good[0].Claims[organizationClaim].(string)
	names := subjects().values
	for i := range wishes {
		d := &draft{claims: map[string]any{}}
		names[chance.IntN(19)].set(d)
		wishes[i] = Wish{
			Subject: d.claims["sub"].(string), Email: pick("", "a@example.com", "A@Example.com"), Name: pick("", "Alice"), OrganizationID: organization, OrgRole: pick("", "member", "admin", "owner"),
			Audiences: []string{audience}, ExpiresAt: time.Now().Add([]time.Duration{time.Hour, 90 * time.Second, 48 * time.Hour, -time.Minute, -24 * time.Hour}[chance.IntN(5)]).Truncate(time.Second),
		}
		if chance.IntN(2) == 0 { // the author may be unable to issue tokens with these fields
			wishes[i].Email, wishes[i].Name, wishes[i].OrgRole = "", "", ""
		}
		if chance.IntN(3) == 0 {
			wishes[i].Audiences = []string{pick(audience+"/", audience+"2", "x", audience[:len(audience)-1]), pick("y", audience)}
		}
		if chance.IntN(4) == 0 {
			wishes[i].NotBefore = time.Now().Add([]time.Duration{-time.Hour, time.Hour}[chance.IntN(2)]).Truncate(time.Second)
		}
		if all := clauses(); chance.IntN(3) == 0 {
			wishes[i].Spoil = all[chance.IntN(len(all))]
		}
	}
	for _, token := range s.issue(ctx, wishes) {
		if token != "" {
			reqs = append(reqs, auth.VerifyRequest{Token: token, Audiences: []string{"https://other.example", audience}})
		}
	}
	return reqs
}

// crowds verifies tokens of many people concurrently and repeatedly, with bad tokens among them.
func crowds(ctx context.Context, s Subject) {
	s.staged(ctx, []Setup{WithRoles, AnyOrganization, OneOrganization}, func(st *stage) {
		chance := s.trial.Rand(0)
		tokens := st.crowd(ctx, 100, chance)
		n := max(len(tokens)*2, s.trial.Count(2000))
		order := make([]int, n)
		for i := range order {
			order[i] = chance.IntN(len(tokens))
		}
		s.trial.Cover("%d calls for %d people, %d at a time", n, len(tokens), 2*workers)
		kit.AtOnce(ctx, n, 2*workers, func(ctx context.Context, i int) {
			who := tokens[order[i]]
			req := auth.VerifyRequest{Token: who.token, Audiences: who.audiences}
			st.verify(ctx, req, fmt.Sprintf("verify %s, among calls for %d people", who.what, len(tokens)))
		})
	})
}

// somebody is the owner of a token in a crowd.
type somebody struct {
	token, what string
	audiences   []string
}

// crowd returns people with similar subjects and random claims. Some of their tokens are bad.
func (st *stage) crowd(ctx context.Context, n int, chance *rand.Rand) (all []somebody) {
	p := st.provider
	if p == nil {
		if st.Samples == nil || len(st.Samples.Good) < 2 && st.Samples.Issue == nil {
			kit.Must(kit.CannotJudge("tokens for at least two people are needed: in --samples, list more in people, or set issue to a command"))
		}
		for _, req := range st.Samples.wishes(ctx, n, chance) {
			all = append(all, somebody{token: req.Token, audiences: req.Audiences, what: st.Samples.called(req.Token)})
		}
		for _, good := range st.Samples.Good {
			audiences, _ := texts(good.Claims["aud"])
			all = append(all, somebody{good.Token, fmt.Sprintf("the sample of %v", good.Claims["sub"]), audiences})
		}
		return all
	}
	pick := func(all ...any) any { return all[chance.IntN(len(all))] }
	for i := range n {
		subject := strings.Repeat("user_", i%3+1) + fmt.Sprint(i/3)
		claims := map[string]any{
			"sub": subject, "name": "Name of " + subject, "email": pick(subject+"@example.com", nil), organizationClaim: pick(p.Organization, p.Organization+"2", p.Organization[:6], "org_other"),
			RoleClaim: pick(nil, "member", "admin", "owner", "guest"), "scope": pick("openid", "openid profile", "a b c", nil), "groups": pick(nil, []string{"staff"}, []string{"guests", "staff2"}),
			"sid": "session_" + subject, "jti": pick(nil, "same"), "exp": time.Now().Unix() + 600 + int64(i), "department": subject,
		}
		if p.Setup == OneOrganization {
			claims[organizationClaim] = p.Organization
		}
		one := somebody{token: p.Token(claims), what: "the token of " + subject, audiences: []string{p.Audience}}
		switch i % 10 {
		case 7:
			one.token, one.what = p.Token(claims, map[string]any{"exp": time.Now().Unix() - 3600}), one.what+", expired"
		case 8:
			one.audiences, one.what = []string{"https://elsewhere.invalid"}, one.what+" for another audience"
		case 9:
			one.token, one.what = p.tokenOf(&signer{p.signer().kid, "sig", p.keys.forger}, changed(p.Claims(), claims)), one.what+", signed by somebody else"
		}
		all = append(all, one)
	}
	return all
}

// clocks repeatedly verifies tokens that are about to become valid or to expire, until they have, and new tokens at the
// same limits.
func clocks(ctx context.Context, s Subject) {
	s.staged(ctx, []Setup{OneOrganization, AnyOrganization}, func(st *stage) {
		s.trial.Cover("tokens close to their time limits, for 10 s")
		verify := func(tokens []somebody, times func(i int) int) {
			kit.AtOnce(ctx, len(tokens), workers, func(ctx context.Context, i int) {
				st.verify(ctx, auth.VerifyRequest{Token: tokens[i].token, Audiences: tokens[i].audiences}, fmt.Sprintf("verify %s, time %d", tokens[i].what, times(i)))
			})
		}
		// On a slow machine the limits would pass before every token was verified once, so start again with later ones.
		var old []somebody
		var over time.Time
		for edge, early := int64(4), false; !early; edge *= 2 {
			begin := time.Now()
			old = st.edges(ctx, []int64{edge, edge + 1, edge + 2, edge + 3})
			verify(old, func(int) int { return 1 })
			early = time.Since(begin) < time.Duration(edge-1)*time.Second || edge > 30
			over = begin.Add(time.Duration(edge+6) * time.Second)
		}
		for round, last := 1, false; !last; round++ {
			last = time.Now().After(over) // all limits have passed, however slow the earlier rounds were
			fresh := []somebody{}
			if st.provider != nil {
				fresh = st.edges(ctx, []int64{-2, 3, 8})
			}
			verify(append(fresh, old...), func(i int) int { return 1 + round*map[bool]int{true: 1}[i >= len(fresh)] })
			if round%4 == 1 {
				old = append(old, fresh...) // so that an adapter that caches still knows them when they reach their limits
			}
			_ = kit.Pause(ctx, 350*time.Millisecond)
		}
		kit.Must(ctx.Err())
	})
}

// edges returns tokens that become valid or expire in the given numbers of seconds, counting the allowed clock
// difference of 30 s.
func (st *stage) edges(ctx context.Context, in []int64) (tokens []somebody) {
	now := time.Now()
	if p := st.provider; p != nil {
		for _, s := range in {
			for claim, at := range map[string]int64{"exp": s - 30, "nbf": s + 30, "iat": s + 30} {
				token := p.Token(map[string]any{claim: now.Unix() + at, "sub": fmt.Sprint("user_", claim, s)})
				tokens = append(tokens, somebody{token: token, what: fmt.Sprintf("a token whose %s was %+d s away", claim, at), audiences: []string{p.Audience}})
			}
		}
		return tokens
	}
	samples := st.Samples
	if samples == nil || samples.Issue == nil {
		kit.Must(kit.CannotJudge("tokens that are about to expire are needed: in --samples, set issue to a command that issues some"))
	}
	wishes := make([]Wish, len(in))
	organization, _ := samples.Good[0].Claims[organizationClaim].(string)
	audiences, _ := texts(samples.Good[0].Claims["aud"])
	for i, s := range in {
		wishes[i] = Wish{Subject: fmt.Sprint("user_", i), OrganizationID: organization, Audiences: audiences, ExpiresAt: now.Add(time.Duration(s-30) * time.Second).Truncate(time.Second)}
	}
	for i, token := range samples.issue(ctx, wishes) {
		tokens = append(tokens, somebody{token: token, what: fmt.Sprintf("a token that expires at %s", wishes[i].ExpiresAt), audiences: audiences})
	}
	return tokens
}
