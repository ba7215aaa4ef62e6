package authtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// withProvider are promises about a provider that rotates its keys or goes away.
func withProvider() []check {
	return []check{
		{name: "a key that the provider rotated in is found", contract: "A key that the provider added is found by the first token that names it", run: findsRotatedKey},
		{name: "a key that the provider rotated out is refused", contract: "A key that the provider removed is no longer used once the adapter has read the key set again", run: dropsRotatedKey},
		{name: "key ids that nobody has cost few questions", contract: "Key ids that the provider does not know cause at most 6 requests for keys a minute", run: asksRarely},
		{name: "known keys outlive the provider", contract: "Keys that were read stay in use while the provider is away", run: keysOutlive},
		{name: "metadata outlives the provider", contract: "also while the provider is away if it was read before", run: metadataOutlives},
		{name: "describe answers while the provider is away", contract: "It answers without asking the provider", run: describesAlone},
	}
}

func findsRotatedKey(ctx context.Context, st *stage) error {
	if err := rotate(ctx, st); err != nil {
		return err
	}
	if _, err := st.verify(ctx, st.provider.Token()); err != nil {
		return fmt.Errorf("a token of the provider's new key was not accepted: %w", err)
	}
	return nil
}

func dropsRotatedKey(ctx context.Context, st *stage) error {
	old := st.provider.Token()
	if err := rotate(ctx, st); err != nil {
		return err
	}
	if _, err := st.verify(ctx, st.provider.Token()); err != nil {
		return nil //nolint:nilerr // whether the new key is found is another check's question
	}
	id, err := st.verify(ctx, old)
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a token of the key that the provider withdrew %w", err)
	}
	return nil
}

// rotate makes sure that the adapter knows the old key first.
func rotate(ctx context.Context, st *stage) error {
	if _, err := st.verify(ctx, st.provider.Token()); err != nil {
		return fmt.Errorf("a good token was not accepted before the rotation: %w", err)
	}
	st.provider.Rotate()
	return nil
}

// asksRarely sends a minute's worth of bad tokens in moments: what may be asked within them is the
// load and a refresh, and, where the machine is slow, one or two refreshes more.
func asksRarely(ctx context.Context, st *stage) error {
	const tokens, limit = 200, 6
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	for i := range tokens {
		token := compact(header(fmt.Sprintf("nobody-%d", i)), st.provider.Claims(), zeros)
		id, err := st.verify(ctx, token)
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a token with a key id that nobody has %w", err)
		}
	}
	if asked := st.provider.KeysAsked(); asked > limit {
		return fmt.Errorf("%d tokens with key ids that nobody has made the adapter ask for keys %d times; %d times a minute is the most", tokens, asked, limit)
	}
	return nil
}

// zeros is a signature that costs nothing, where nobody has a key to check it by.
func zeros([]byte) []byte { return make([]byte, 256) }

func keysOutlive(ctx context.Context, st *stage) error {
	if _, err := st.verify(ctx, st.samples.Good); err != nil {
		return fmt.Errorf("a good token was not accepted: %w", err)
	}
	st.provider.SetFault(Away)
	if _, err := st.verify(ctx, st.provider.Token(map[string]any{"jti": "another"})); err != nil {
		return fmt.Errorf("with the provider away, a good token of a known key was not accepted: %w", err)
	}
	return nil
}

func metadataOutlives(ctx context.Context, st *stage) error {
	before, err := st.adapter.Metadata(ctx)
	if err != nil {
		return fmt.Errorf("metadata failed: %w", err)
	}
	st.provider.SetFault(Away)
	after, err := st.adapter.Metadata(ctx)
	if err != nil {
		return fmt.Errorf("with the provider away, metadata failed: %w", err)
	}
	if !bytes.Equal(compactJSON(before), compactJSON(after)) {
		return fmt.Errorf("with the provider away, metadata changed from %s to %s", before, after)
	}
	return nil
}

func compactJSON(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

func describesAlone(ctx context.Context, st *stage) error {
	st.provider.SetFault(Away)
	if _, err := st.adapter.Describe(ctx); err != nil {
		return fmt.Errorf("with the provider away, describe failed: %w", err)
	}
	return nil
}

// coldStarts are checks of an adapter whose provider fails from the first moment on: it cannot
// tell good tokens from bad ones, and must say so rather than refuse or accept.
func coldStarts() []kit.Check[Subject] {
	faults := []struct {
		fault Fault
		name  string
	}{
		{Away, "is away"},
		{Broken, "answers 500"},
		{Junk, "answers with anything but JSON"},
		{Huge, "never ends its key set"},
		{OtherIssuer, "writes documents about another issuer"},
		{Elsewhere, "redirects to another host for its keys"},
		{HugeDocument, "never ends its metadata"},
		{NearlyThatIssuer, "writes documents about an issuer with a slash more"},
		{LargeDocument, "writes documents of 3 MiB"},
		{LargeKeySet, "writes a key set of 3 MiB"},
		{DocumentElsewhere, "redirects to another host for its metadata"},
	}
	var checks []kit.Check[Subject]
	for _, f := range faults {
		checks = append(checks, kit.Check[Subject]{
			Name:     "an adapter that starts while its provider " + f.name + " answers unavailable",
			Contract: "UNAVAILABLE means that the adapter cannot tell: never an acceptance and never a refusal",
			Run:      func(ctx context.Context, s Subject) error { return coldStart(ctx, s, f.fault) },
		})
	}
	return checks
}

func coldStart(ctx context.Context, s Subject, fault Fault) error {
	p, err := NewProvider(s.Keys)
	if err != nil {
		return err
	}
	defer p.Close()
	p.SetFault(fault)
	adapter, end, err := s.Open(ctx, p)
	if err != nil {
		return fmt.Errorf("the adapter did not open without its provider: %w", err)
	}
	defer end()
	st := &stage{provider: p, adapter: adapter, samples: Samples{Audience: Audience}}
	id, err := st.verify(ctx, p.Token())
	aboutDocuments := []Fault{OtherIssuer, HugeDocument, NearlyThatIssuer, LargeDocument, DocumentElsewhere}
	if slices.Contains(aboutDocuments, fault) && p.DocumentsRead() == 0 && err == nil {
		return nil // the settings alone say where the keys are: no document could mislead it
	}
	if err := mustNotTell(id, err); err != nil {
		return fmt.Errorf("a good token that cannot be checked %w", err)
	}
	return nil
}
