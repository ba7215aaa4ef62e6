package oidc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func TestMain(m *testing.M) {
	if err := testkit.Parallel("32"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func newKeys(t *testing.T) *authtest.Keys {
	t.Helper()
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// configured returns an adapter that trusts p, logs to out and has additional settings.
func configured(ctx context.Context, p *authtest.Provider, out *kit.Output, more string) (*oidc.Adapter, error) {
	adapter := oidc.New()
	adapter.UseLogger(hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Trace, JSONFormat: true}))
	settings := strings.Replace(authtest.Settings(p), "{", "{"+more, 1)
	return adapter, adapter.Configure(ctx, plugins.Config{JSON: json.RawMessage(settings)})
}

func TestOIDCKeepsTheContract(t *testing.T) {
	for name, more := range map[string]string{"with RS256 alone": "", "with every algorithm": `"algorithms": ["RS256", "ES256", "EdDSA"], `} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &kit.Output{}
			plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Quick), authtest.Subject{
				Keys: newKeys(t), Logins: true, Rechecks: true, Heard: out.String,
				Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
					adapter, err := configured(ctx, p, out, more)
					return adapter, func() { _ = adapter.Close() }, err
				},
			})
		})
	}
	t.Run("over the wire", func(t *testing.T) {
		t.Parallel()
		plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Quick), authtest.Subject{
			Keys: newKeys(t), Logins: true, Rechecks: true,
			Open: func(_ context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
				adapter := oidc.New()
				return auth.Client(plugintest.Configured(t, auth.Plugin(adapter), authtest.Settings(p))), func() { _ = adapter.Close() }, nil
			},
		})
	})
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
	adapter, err := configured(b.Context(), p, &kit.Output{}, "")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = adapter.Close() }()
	req := auth.VerifyRequest{Token: p.Token(), Audiences: []string{p.Audience}}
	for b.Loop() {
		if _, err := adapter.Verify(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
