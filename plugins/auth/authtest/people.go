package authtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// person is somebody with a token.
type person struct{ subject, name, email, organization, role string }

// crowd are people who differ in everything, and some in one thing alone.
func crowd() []person {
	return []person{
		{"user_alice", "Alice", "alice@example.com", Organization, "member"},
		{"user_bob", "Bob", "bob@example.com", "org_other", "owner"},
		{"user_carol", "Carol", "carol@example.com", Organization, "admin"},
		{"user_bob2", "Bob", "bob@example.org", "org_third", ""},
		{"user_dave", "Dave", "dave@example.com", "org_other", "superowner"},
	}
}

func (p person) token(provider *Provider) string {
	return provider.Token(map[string]any{"sub": p.subject, "name": p.name, "email": p.email, "org_id": p.organization, RoleClaim: nilIfEmpty(p.role)})
}

func nilIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// people are promises about tokens of several subjects in one run.
func people() []check {
	const own = "The identity is the token's own: its subject, its organization, its role, whatever tokens came before or come at the same moment"
	const role = "without a role in the token nobody is more than a member"
	list := []check{
		{name: "each token is its own subject's, whatever tokens came before", contract: own, setup: AnyOrganization, run: eachItsSubject},
		{name: "each token has its own organization, whatever tokens came before", contract: own, setup: AnyOrganization, run: eachItsOrganization},
		{name: "no token has the name or e-mail address of somebody else", contract: own, setup: AnyOrganization, run: eachItsName},
		{name: "calls at once with different tokens are each answered with their own subject", contract: own, setup: AnyOrganization, run: eachItsSubjectAtOnce},
		{name: "nobody has scopes that the token does not grant", contract: "The scopes that were granted; may be empty", run: noFurtherScopes},
		{name: "a token without a role is no more than a member's", contract: role, setup: WithRoles, run: hasRole("", "member")},
		{name: "a role that the server does not know makes nobody more than a member", contract: role, setup: WithRoles, run: hasRole("superowner", "member")},
		{name: "a token of a settings that name no role claim is no more than a member's", contract: role, setup: AnyOrganization, run: noRoleWithoutClaim},
	}
	for _, rank := range []string{"owner", "admin", "member"} {
		list = append(list, check{name: "a token with the role " + rank + " has that role", contract: `"owner", "admin" or "member"; empty counts as member`, setup: WithRoles, run: hasRole(rank, rank)})
	}
	return list
}

// asked verifies the tokens of the crowd, twice and in different order.
func asked(ctx context.Context, st *stage, look func(person, auth.Identity) error) error {
	all := crowd()
	for round := range 2 {
		for i := range all {
			who := all[(i*2+round)%len(all)]
			id, err := st.verify(ctx, who.token(st.provider))
			if err != nil {
				return fmt.Errorf("the good token of %s was not accepted: %w", who.subject, err)
			}
			if err := look(who, id); err != nil {
				return fmt.Errorf("the token of %s %w", who.subject, err)
			}
		}
	}
	return nil
}

func eachItsSubject(ctx context.Context, st *stage) error {
	return asked(ctx, st, func(who person, id auth.Identity) error {
		if id.Subject != who.subject || id.Issuer != st.provider.Issuer() {
			return fmt.Errorf("is %q of %q", id.Subject, id.Issuer)
		}
		return nil
	})
}

func eachItsOrganization(ctx context.Context, st *stage) error {
	return asked(ctx, st, func(who person, id auth.Identity) error {
		if id.OrganizationID != who.organization && (id.OrganizationID != "" || !st.limits.NoOrganization) {
			return fmt.Errorf("is of the organization %q, not %q", id.OrganizationID, who.organization)
		}
		return nil
	})
}

func eachItsName(ctx context.Context, st *stage) error {
	return asked(ctx, st, func(who person, id auth.Identity) error {
		for _, other := range crowd() {
			if id.Email == other.email && other.email != who.email || id.DisplayName == other.name && other.name != who.name {
				return fmt.Errorf("has the name %q and the e-mail address %q", id.DisplayName, id.Email)
			}
		}
		return nil
	})
}

func eachItsSubjectAtOnce(ctx context.Context, st *stage) error {
	const rounds = 12
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	var mu sync.Mutex
	var problems []error
	var wg sync.WaitGroup
	for range rounds {
		for _, who := range crowd() {
			token := who.token(st.provider)
			wg.Go(func() {
				id, err := st.verify(ctx, token)
				ownOrganization := id.OrganizationID == who.organization || id.OrganizationID == "" && st.limits.NoOrganization
				if err == nil && id.Subject == who.subject && ownOrganization {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, fmt.Errorf("of calls at once with different tokens, the one of %s of %s was answered with %q of %q (%w)", who.subject, who.organization, id.Subject, id.OrganizationID, errors.Join(err)))
			})
		}
	}
	wg.Wait()
	if len(problems) > 0 {
		return problems[0]
	}
	return nil
}

func noFurtherScopes(ctx context.Context, st *stage) error {
	for _, granted := range []string{"openid profile", "openid", ""} {
		id, err := st.verify(ctx, st.provider.Token(map[string]any{"scope": nilIfEmpty(granted)}))
		if err != nil {
			return fmt.Errorf("a good token with the scopes %q was not accepted: %w", granted, err)
		}
		for _, scope := range id.Scopes {
			if !contains(granted, scope) {
				return fmt.Errorf("a token with the scopes %q was answered with the scopes %q", granted, id.Scopes)
			}
		}
	}
	return nil
}

// mustHaveRole compares roles; nothing counts as member.
func mustHaveRole(id auth.Identity, want string) error {
	if got := id.OrgRole; got != want && (got != "" || want != "member") {
		return fmt.Errorf("has the role %q, not %q", got, want)
	}
	return nil
}

// hasRole comes after tokens of every other role.
func hasRole(given, want string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		tokens := []string{}
		for _, who := range crowd() {
			if who.role != given {
				tokens = append(tokens, who.token(st.provider))
			}
		}
		for _, token := range tokens {
			if _, err := st.verify(ctx, token); err != nil {
				return fmt.Errorf("a good token was not accepted: %w", err)
			}
		}
		for _, claim := range []any{nilIfEmpty(given), []string{given}} {
			if list, ok := claim.([]string); ok && list[0] == "" {
				continue
			}
			id, err := st.verify(ctx, st.provider.Token(map[string]any{"sub": "user_erin", RoleClaim: claim}))
			if err != nil {
				return fmt.Errorf("a good token with the role %q was not accepted: %w", given, err)
			}
			if err := mustHaveRole(id, want); err != nil {
				return fmt.Errorf("a token whose role is %v %w", claim, err)
			}
		}
		return nil
	}
}

func noRoleWithoutClaim(ctx context.Context, st *stage) error {
	if st.limits.NoRoles && st.limits.OneOrganization {
		return kit.Skip("the adapter finds roles elsewhere")
	}
	id, err := st.verify(ctx, st.provider.Token(map[string]any{"org_role": nil, RoleClaim: nil}))
	if err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	if err := mustHaveRole(id, "member"); err != nil {
		return fmt.Errorf("a token without any role %w", err)
	}
	return nil
}
