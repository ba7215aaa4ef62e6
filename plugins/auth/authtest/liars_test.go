package authtest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

func TestMain(m *testing.M) {
	if err := testkit.Parallel("32"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// honest is an adapter that keeps every promise. Each liar embeds it and breaks one.
type honest struct {
	*oidc.Adapter
	provider *authtest.Provider
	log      hclog.Logger
	out      *kit.Output // where it logs to and prints
}

func openHonest(ctx context.Context, p *authtest.Provider, out *kit.Output) (honest, func(), error) {
	adapter := oidc.New()
	log := hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Trace, JSONFormat: true})
	adapter.UseLogger(log)
	err := adapter.Configure(ctx, plugins.Config{JSON: json.RawMessage(authtest.Settings(p))})
	return honest{adapter, p, log, out}, func() { _ = adapter.Close() }, err
}

// liars maps each check to an adapter that only it must catch.
func liars() map[string]func(honest) auth.Adapter {
	all := map[string]func(honest) auth.Adapter{
		"describe names an issuer, and says the same each time": func(h honest) auth.Adapter { return &wavers{honest: h} },

		"without the capability revocations a watch is unimplemented": func(h honest) auth.Adapter { return watchesAnyway{h} },

		"a text that is not a token is refused":                      func(h honest) auth.Adapter { return letsIn{h, "undefined"} },
		"no error repeats the token":                                 func(h honest) auth.Adapter { return repeats{h} },
		"metadata is one JSON object about the issuer, or not found": func(h honest) auth.Adapter { return abridges{h} },
		"a call whose time is over returns":                          func(h honest) auth.Adapter { return takesItsTime{h} },
		"browser login is there exactly when describe says so":       func(h honest) auth.Adapter { return hidesLogin{h} },
		"a good token is its subject's, until it expires":            func(h honest) auth.Adapter { return prolongs{h} },
		"without audiences any audience will do":                     func(h honest) auth.Adapter { return wantsAudience{h} },
		"calls may come at once":                                     func(h honest) auth.Adapter { return &oneAtATime{honest: h} },
		"a key that the provider rotated in is found":                func(h honest) auth.Adapter { return knowsFirstKeyOnly{h} },
		"a key that the provider rotated out is refused":             func(h honest) auth.Adapter { return accepts{h, `no key "first"`} },
		"key ids that nobody has cost few questions":                 func(h honest) auth.Adapter { return asksEachTime{h} },
		"known keys outlive the provider":                            func(h honest) auth.Adapter { return verifiesOnline{h} },
		"metadata outlives the provider":                             func(h honest) auth.Adapter { return relaysOnline{h} },
		"describe answers while the provider is away":                func(h honest) auth.Adapter { return describesOnline{h} },
		"a browser login ends with the person":                       func(h honest) auth.Adapter { return mistakes{h} },
		"a login that comes back with another nonce is refused":      func(h honest) auth.Adapter { return logsIn{h, "nonce"} },
		"a login with another verifier is refused":                   func(h honest) auth.Adapter { return &forgetsVerifier{honest: h} },
		"a code that nobody gave is refused":                         func(h honest) auth.Adapter { return &believesCode{forgetsVerifier{honest: h}} },
		"a login is unavailable while the provider is away":          func(h honest) auth.Adapter { return refusesLogin{h} },
	}
	for clause, phrase := range map[authtest.Clause]string{
		authtest.Signature: "signature is not", authtest.Algorithm: "algorithm is", authtest.Issuer: "of the issuer",
		authtest.ForAnother: "another audience", authtest.Expired: "has expired", authtest.NoExpiry: "no expiry",
		authtest.NotYet: "not valid yet", authtest.OtherOrg: "another organization", authtest.Form: "critical headers",
	} {
		all["a token with "+string(clause)+" is refused"] = func(h honest) auth.Adapter { return accepts{h, phrase} }
	}
	for fault, phrase := range map[string]string{
		"is away": "EOF", "answers 500": "answered 500", "answers with anything but JSON": "not a metadata document",
		"never ends its key set": "is larger than", "writes documents about another issuer": "is about the issuer",
	} {
		all["an adapter that starts while its provider "+fault+" answers unavailable"] = func(h honest) auth.Adapter { return refusesAway{h, phrase} }
	}
	return all
}

func TestEveryLieIsCaughtByItsCheckAlone(t *testing.T) {
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	lies := liars()
	silent := &kit.Output{}
	truthful := authtest.Subject{Keys: keys, Heard: silent.String, Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
		return openHonest(ctx, p, silent)
	}}
	proven := map[string]bool{}
	for _, l := range allLies() {
		proven[l.check] = true
	}
	old := slices.DeleteFunc(authtest.Checks(truthful), func(c kit.Check[authtest.Subject]) bool { return lies[c.Name] == nil })
	for _, c := range authtest.Checks(truthful) {
		if lies[c.Name] == nil && !proven[c.Name] {
			t.Errorf("no liar proves the check %q", c.Name)
		}
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := truthful
			s.Open = func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
				h, end, err := openHonest(ctx, p, &kit.Output{})
				return lie(h), end, err
			}
			if failed := kit.Failed(kit.Run(t.Context(), old, s)); !slices.Equal(failed, []string{name}) {
				t.Errorf("caught by %q, want by %q alone", failed, name)
			}
		})
	}
}

func TestThereAreFortyKindsOfForgedTokensAtLeast(t *testing.T) {
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	p, err := authtest.NewProvider(keys)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	names, tokens := map[string]bool{}, map[string]bool{}
	for _, f := range p.Forgeries() {
		names[string(f.Clause)+f.Name], tokens[f.Token] = true, true
	}
	if len(names) < 40 || len(tokens) != len(names) {
		t.Errorf("%d names, %d tokens; want 40 or more, all different", len(names), len(tokens))
	}
}

// peek believes what a token says.
func peek(token string) (auth.Identity, error) {
	var claims struct {
		Sub any     `json:"sub"`
		Exp float64 `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if len(parts) < 2 {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(payload, &claims)
	return auth.Identity{Issuer: "believed", Subject: fmt.Sprint(claims.Sub), ExpiresAt: time.Now().Add(time.Hour)}, nil
}
