package access

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// bound accepts the token "bound" once for each proof. It treats other tokens as provider does.
type bound struct {
	*provider
	seen []string
}

func (*bound) VerifiesRequests() bool { return true }

func (b *bound) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := b.provider.Verify(ctx, req)
	if req.Token != "bound" {
		return id, err
	}
	proof := req.Headers["dpop"]
	if proof != req.Method+" "+req.URL && req.ClientCertificateSHA256 != "thumb" || slices.Contains(b.seen, proof) && proof != "" {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	b.seen = append(b.seen, proof)
	return b.identity("alice"), nil
}

func TestAVerdictOnAProofAppliesOnlyToItsRequest(t *testing.T) {
	state := openState(t)
	b := &bound{provider: newProvider("https://one", "bob")}
	a := New(Options{Audiences: []string{"https://base"}, Users: state, Cookies: state, Keys: state, Enroller: state, Providers: []Provider{{Name: "one", Adapter: b}}})
	if !a.BindsTokens() {
		t.Fatal("the provider should be known to check requests")
	}
	ask := func(r *core.TokenRequest) error {
		_, err := a.MCP(core.WithTokenRequest(t.Context(), r), "bound", "")
		return err
	}
	proven := func() *core.TokenRequest {
		return &core.TokenRequest{Method: "POST", URL: "https://base/mcp", DPoP: "POST https://base/mcp"}
	}
	refused := func(name string, err error) {
		t.Helper()
		if core.CodeOf(err) != core.CodeUnauthenticated {
			t.Errorf("%s: got %v, want %s", name, err, core.CodeUnauthenticated)
		}
	}
	refused("without a proof", ask(&core.TokenRequest{Method: "POST", URL: "https://base/mcp"}))
	first := proven()
	if err := errors.Join(ask(first), ask(first)); err != nil { // in two places of one request, right after the token was refused
		t.Fatalf("with a proof: %v", err)
	}
	refused("the same proof again", ask(proven()))
	refused("without a proof, after one was accepted", ask(&core.TokenRequest{Method: "POST", URL: "https://base/mcp"}))
	_, err := a.MCP(t.Context(), "bound", "")
	refused("without a request", err)
	other := proven()
	other.URL = "https://base/v1/tools"
	refused("a proof for another URL", ask(other))
	for range 2 {
		if err := ask(&core.TokenRequest{ClientCertificate: "thumb"}); err != nil {
			t.Errorf("with a certificate: %v", err)
		}
	}
	refused("another certificate", ask(&core.TokenRequest{ClientCertificate: "other"}))

	calls := b.calls.Load()
	for range 3 {
		if _, err := a.MCP(core.WithTokenRequest(t.Context(), &core.TokenRequest{Method: "GET", URL: "https://base/mcp"}), "token-of-bob", ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.calls.Load() - calls; got != 1 {
		t.Errorf("a token without a proof was verified %d times, want once", got)
	}
	if req := b.asked[len(b.asked)-1]; req.Method != "GET" || req.URL != "https://base/mcp" || len(req.Headers) != 0 {
		t.Errorf("the adapter got %+v", req)
	}
}

func TestAnAdapterThatDoesNotCheckRequestsReceivesNone(t *testing.T) {
	state := openState(t)
	p := newProvider("https://one", "alice")
	a := New(Options{Audiences: []string{"https://base"}, Users: state, Cookies: state, Keys: state, Enroller: state, Providers: []Provider{{Name: "one", Adapter: p}}})
	if a.BindsTokens() {
		t.Fatal("the provider should not be treated as one that checks requests")
	}
	for range 2 {
		ctx := core.WithTokenRequest(t.Context(), &core.TokenRequest{Method: "POST", URL: "https://base/mcp", DPoP: "proof", ClientCertificate: "thumb"})
		if _, err := a.MCP(ctx, "token-of-alice", ""); err != nil {
			t.Fatal(err)
		}
	}
	if req := p.asked[0]; len(p.asked) != 1 || req.Method != "" || req.URL != "" || req.Headers != nil || req.ClientCertificateSHA256 != "" {
		t.Errorf("the adapter got %d requests, first with %+v", len(p.asked), req)
	}
}
