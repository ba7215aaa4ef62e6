package authtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// check is one promise, checked on a stage of its own.
type check struct {
	name     string
	contract string // the sentence of the .proto file
	setup    Setup
	run      func(context.Context, *stage) error
}

// Checks are the promises of package auth that can be checked on s: those of every adapter, those
// that need tokens to try, and those that need a provider to switch faults on.
func Checks(s Subject) []kit.Check[Subject] {
	var checks []kit.Check[Subject]
	add := func(list []check) {
		for _, c := range list {
			checks = append(checks, kit.Check[Subject]{Name: c.name, Contract: c.contract, Run: func(ctx context.Context, s Subject) error {
				st, err := s.stage(ctx, c.setup)
				if err != nil {
					return err
				}
				defer func() { st.close() }()
				return c.run(ctx, st)
			}})
		}
	}
	add(always())
	add(silenceAboutTokens())
	add(revocations(s))
	add(sessions(s))
	add(proofs(s))
	if s.Keys != nil || s.Samples != nil {
		add(withTokens())
		add(refusals(s))
	}
	if s.Keys != nil {
		add(withProvider())
		add(people())
		add(clocks())
		add(exact())
		add(algorithms())
		add(lying())
		add(withLogin())
		add(lyingLogins())
		add(mixedLogins())
		add(silenceAboutLogins())
		checks = append(checks, coldStarts()...)
	}
	return checks
}

// refusals is one check per clause that s has forged tokens for.
func refusals(s Subject) []check {
	var list []check
	for _, clause := range clauses() {
		if s.Keys == nil && !s.Samples.has(clause) {
			continue
		}
		list = append(list, check{name: "a token with " + string(clause) + " is refused", contract: clause.contract(), run: func(ctx context.Context, st *stage) error {
			if clause == OtherOrg && st.limits.NoOrganization {
				return kit.Skip("the settings name no organization that alone is let in")
			}
			return refuseAll(ctx, st, clause)
		}})
	}
	return list
}

func (s *Samples) has(clause Clause) bool {
	return slices.ContainsFunc(s.Bad, func(f Forgery) bool { return f.Clause == clause })
}

// refuseAll first makes sure that the adapter tells good from bad at all.
func refuseAll(ctx context.Context, st *stage, clause Clause) error {
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted, so refusing others proves nothing: %w", err)
	}
	for _, f := range st.forgeries(clause) {
		id, err := st.verify(ctx, f.Token)
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a token with %s (%s) %w", clause, f.Name, err)
		}
	}
	return nil
}
