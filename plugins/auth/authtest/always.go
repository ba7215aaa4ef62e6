package authtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// prompt is how long after the end of its context a call may go on.
const prompt = 3 * time.Second

// always are the promises that every adapter keeps.
func always() []check {
	return []check{
		{name: "describe names an issuer, and says the same each time", contract: "The issuer whose tokens it accepts", run: describes},
		{name: "a text that is not a token is refused", contract: "Any text may come as a token, the empty one included", run: refusesJunk},
		{name: "no error repeats the token", contract: "No token, code or secret appears in an error or a log line", run: repeatsNoToken},
		{name: "metadata is one JSON object about the issuer, or not found", contract: "as the provider wrote it", run: relaysMetadata},
		{name: "a call whose time is over returns", contract: "Calls come concurrently, each with a deadline", run: returnsInTime},
		{name: "browser login is there exactly when describe says so", contract: "The adapter serves LoginService and its settings allow a browser login", run: loginAsDescribed},
	}
}

func describes(ctx context.Context, st *stage) error {
	first, err := st.adapter.Describe(ctx)
	if err != nil {
		return fmt.Errorf("describe failed: %w", err)
	}
	if first.Issuer == "" {
		return errors.New("describe names no issuer")
	}
	if st.provider != nil && first.Issuer != st.provider.Issuer() {
		return fmt.Errorf("describe names the issuer %q; it is configured for %q", first.Issuer, st.provider.Issuer())
	}
	second, err := st.adapter.Describe(ctx)
	if err != nil {
		return fmt.Errorf("the second describe failed: %w", err)
	}
	if !reflect.DeepEqual(first, second) {
		return fmt.Errorf("describe first said %+v, then %+v", first, second)
	}
	return nil
}

// junk is what callers send who have no token.
func junk() []string {
	return []string{
		"", " ", ".", "..", "...", "null", "{}", "Bearer x", "undefined", "not-a-token-at-all",
		"eyJhbGciOiJub25lIn0.e30.", "a.b.c", strings.Repeat("x", 20_000), "\x00\x01", "ünïcödé-töken-öf-nöbödy",
	}
}

func refusesJunk(ctx context.Context, st *stage) error {
	for _, token := range junk() {
		for _, audiences := range [][]string{nil, {Audience}} {
			id, err := st.adapter.Verify(ctx, auth.VerifyRequest{Token: token, Audiences: audiences})
			if err := mustRefuse(id, err); err != nil {
				return fmt.Errorf("the text %q, which is no token, %w", start(token), err)
			}
		}
	}
	return nil
}

func start(s string) string { return s[:min(len(s), 40)] }

func repeatsNoToken(ctx context.Context, st *stage) error {
	tokens := []string{"an-opaque-token-that-nobody-gave-0123456789"}
	for _, f := range append(st.forgeries(Signature), st.forgeries(Expired)...) {
		tokens = append(tokens, f.Token)
	}
	for _, token := range tokens {
		_, err := st.verify(ctx, token)
		if err == nil || len(token) < 16 {
			continue // whether it must be refused is another check's question
		}
		for _, part := range append(strings.Split(token, "."), token) {
			if len(part) >= 16 && strings.Contains(err.Error(), part) {
				return fmt.Errorf("the error of a refused token holds a part of it: %q", start(err.Error()))
			}
		}
	}
	return nil
}

func relaysMetadata(ctx context.Context, st *stage) error {
	raw, err := st.adapter.Metadata(ctx)
	if errors.Is(err, plugins.ErrNotFound) && st.provider == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("metadata failed: %w", err)
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		return fmt.Errorf("metadata is not a JSON object: %w", err)
	}
	if d, err := st.adapter.Describe(ctx); err == nil && document["issuer"] != d.Issuer {
		return fmt.Errorf("metadata is about the issuer %v, describe names %q", document["issuer"], d.Issuer)
	}
	if st.provider != nil && !bytes.Contains(raw, []byte("client_id_metadata_document_supported")) {
		return errors.New("metadata lacks a member of the provider's document; it must be relayed as the provider wrote it")
	}
	return nil
}

func returnsInTime(ctx context.Context, st *stage) error {
	if st.provider != nil {
		st.provider.SetFault(Hanging)
	}
	token := st.samples.Good
	if token == "" {
		token = "an-opaque-token-that-nobody-gave"
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		_, err := st.verify(short, token)
		done <- err
	}()
	select {
	case err := <-done:
		if errors.Is(err, plugins.ErrUnauthenticated) && st.samples.Good != "" {
			return fmt.Errorf("a good token was refused because time was over: %w", err)
		}
	case <-time.After(prompt):
		return fmt.Errorf("verify did not return %v after its context had ended", time.Since(began).Round(time.Second))
	}
	return nil
}

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
