package oidc_test

import (
	"errors"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// TestNoForgedTokenIsAccepted tries every kind of forged token with the audiences that a server
// asks for, each between two good ones.
func TestNoForgedTokenIsAccepted(t *testing.T) {
	p, err := authtest.NewProvider(newKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	adapter, end, err := direct(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	audiences := []string{"https://ropewalk.example", "https://ropewalk.example/", authtest.Audience, authtest.ClientID}
	forgeries := p.Forgeries()
	for _, f := range forgeries {
		t.Run(string(f.Clause)+": "+f.Name, func(t *testing.T) {
			if _, err := adapter.Verify(t.Context(), auth.VerifyRequest{Token: p.Token(), Audiences: audiences}); err != nil {
				t.Fatalf("a good token: %v", err)
			}
			id, err := adapter.Verify(t.Context(), auth.VerifyRequest{Token: f.Token, Audiences: audiences})
			if !errors.Is(err, plugins.ErrUnauthenticated) {
				t.Errorf("got %+v, %v, want a refusal", id, err)
			}
		})
	}
	t.Logf("%d kinds of forged tokens, 0 accepted", len(forgeries))
}

func BenchmarkVerify(b *testing.B) {
	keys, err := authtest.NewKeys()
	if err != nil {
		b.Fatal(err)
	}
	p, err := authtest.NewProvider(keys)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	adapter, end, err := direct(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	defer end()
	req := auth.VerifyRequest{Token: p.Token(), Audiences: []string{authtest.Audience}}
	for b.Loop() {
		if _, err := adapter.Verify(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
