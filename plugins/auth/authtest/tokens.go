package authtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// withTokens are promises about tokens that are good.
func withTokens() []check {
	return []check{
		{name: "a good token is its subject's, until it expires", contract: "Verify checks a token and returns its owner", run: acceptsGood},
		{name: "without audiences any audience will do", contract: "empty means any audience will do", run: acceptsAnyAudience},
		{name: "calls may come at once", contract: "Calls come concurrently", run: answersAtOnce},
	}
}

func acceptsGood(ctx context.Context, st *stage) error {
	id, err := st.verify(ctx, st.samples.Good)
	if err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	if err := st.mustBe(id, st.samples.Identity); err != nil {
		return fmt.Errorf("the identity of a good token %w", err)
	}
	return nil
}

func acceptsAnyAudience(ctx context.Context, st *stage) error {
	if _, err := st.adapter.Verify(ctx, auth.VerifyRequest{Token: st.samples.Good}); err != nil {
		return fmt.Errorf("a good token was not accepted by a request that names no audience: %w", err)
	}
	return nil
}

func answersAtOnce(ctx context.Context, st *stage) error {
	const callers = 32
	problems := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			token, good := st.samples.Good, true
			if i%2 == 1 {
				token, good = "a-token-that-nobody-gave-anybody", false
			}
			id, err := st.verify(ctx, token)
			switch {
			case good && err != nil:
				problems[i] = fmt.Errorf("of %d calls at once, one with a good token failed: %w", callers, err)
			case good && id.Subject != st.samples.Identity.Subject:
				problems[i] = fmt.Errorf("of %d calls at once, one was answered with the identity of %q", callers, id.Subject)
			case !good && !errors.Is(err, plugins.ErrUnauthenticated):
				problems[i] = fmt.Errorf("of %d calls at once, one with a bad token was not refused: %v", callers, err) //nolint:errorlint // err may be nil
			}
		})
	}
	wg.Wait()
	return errors.Join(problems...)
}
