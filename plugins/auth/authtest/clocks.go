package authtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// clocks are promises about times, and about the audiences that a token names.
func clocks() []check {
	const skew = "Clocks may differ by 30 seconds in both directions: a token is good until 30 seconds after its exp and from 30 seconds before its nbf and iat"
	const audience = "The token must carry one of these audiences"
	return []check{
		{name: "a token that expired 20 s ago is still good", contract: skew, run: skewed("exp", -20*time.Second, true)},
		{name: "a token that expired 45 s ago is refused", contract: skew, run: skewed("exp", -45*time.Second, false)},
		{name: "a token that is good from 20 s from now on is good already", contract: skew, run: skewed("nbf", 20*time.Second, true)},
		{name: "a token that is good from 45 s from now on is refused", contract: skew, run: skewed("nbf", 45*time.Second, false)},
		{name: "a token that was issued 20 s from now is good already", contract: skew, run: skewed("iat", 20*time.Second, true)},
		{name: "a token that was issued 45 s from now is refused", contract: skew, run: skewed("iat", 45*time.Second, false)},
		{name: "a token that was good is refused once it is over", contract: "A verdict is never remembered beyond that", run: forgetsInTime},
		{name: "each audience of a token counts", contract: audience, run: anyOfItsAudiences},
		{name: "each audience of a request counts", contract: audience, run: anyOfTheRequest},
		{name: "a token that was accepted for one audience is refused for another", contract: audience, run: audiencesAnew},
	}
}

func skewed(claim string, by time.Duration, good bool) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if _, err := st.verify(ctx, st.samples.Good); err != nil {
			return fmt.Errorf("a good token was not accepted: %w", err)
		}
		id, err := st.verify(ctx, st.provider.Token(map[string]any{claim: time.Now().Add(by).Unix()}))
		if good && err != nil {
			return fmt.Errorf("a token whose %s is %s from now must be accepted: clocks may differ by 30 s; it was answered with %w", claim, by, err)
		}
		if !good {
			if err := mustRefuse(id, err); err != nil {
				return fmt.Errorf("a token whose %s is %s from now %w", claim, by, err)
			}
		}
		return nil
	}
}

// forgetsInTime asks for one token until it must be over.
func forgetsInTime(ctx context.Context, st *stage) error {
	var exp time.Time
	var token string
	for {
		exp = time.Now().Add(-26 * time.Second).Truncate(time.Second)
		token = st.provider.Token(map[string]any{"exp": exp.Unix()})
		_, err := st.verify(ctx, token)
		if err == nil {
			break
		}
		if age := time.Since(exp); age < 29*time.Second || ctx.Err() != nil { // else the call took so long that it proves nothing
			return fmt.Errorf("a token that expired %s ago was not accepted: %w", age.Round(time.Second), err)
		}
	}
	for {
		id, err := st.verify(ctx, token)
		if errors.Is(err, plugins.ErrUnauthenticated) {
			return nil
		}
		if age := time.Since(exp); age > 33*time.Second {
			return fmt.Errorf("a token that was good before and expired %s ago %w", age.Round(time.Second), mustRefuse(id, err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func anyOfItsAudiences(ctx context.Context, st *stage) error {
	for _, aud := range []any{Audience, []string{Audience}, []string{Audience, "x"}, []string{"x", Audience}, []string{"x", "y", Audience, "z"}} {
		if _, err := st.verify(ctx, st.provider.Token(map[string]any{"aud": aud})); err != nil {
			return fmt.Errorf("a token with the audiences %v was not accepted for %s: %w", aud, Audience, err)
		}
	}
	return nil
}

func anyOfTheRequest(ctx context.Context, st *stage) error {
	for _, wanted := range [][]string{{Audience}, {Audience, "x"}, {"x", Audience}, {"x", "y", Audience, "z"}} {
		if _, err := st.adapter.Verify(ctx, auth.VerifyRequest{Token: st.samples.Good, Audiences: wanted}); err != nil {
			return fmt.Errorf("a token for %s was not accepted by a request that names %q: %w", Audience, wanted, err)
		}
	}
	return nil
}

func audiencesAnew(ctx context.Context, st *stage) error {
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	id, err := st.adapter.Verify(ctx, auth.VerifyRequest{Token: st.samples.Good, Audiences: []string{"https://elsewhere.example"}})
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a token that had been accepted for its audience, asked for another one, %w", err)
	}
	return nil
}

// contains reports whether word is one of the words of text.
func contains(text, word string) bool {
	for _, one := range strings.Fields(text) {
		if one == word {
			return true
		}
	}
	return false
}
