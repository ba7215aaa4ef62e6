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

func direct(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
	adapter := oidc.New()
	err := adapter.Configure(ctx, plugins.Config{JSON: json.RawMessage(authtest.Settings(p))})
	return adapter, func() { _ = adapter.Close() }, err
}

func overWire(t *testing.T) func(context.Context, *authtest.Provider) (auth.Adapter, func(), error) {
	return func(_ context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
		adapter := oidc.New()
		conn := plugintest.Configured(t, auth.Plugin(adapter), authtest.Settings(p))
		return auth.Client(conn), func() { _ = adapter.Close() }, nil
	}
}

func newKeys(t *testing.T) *authtest.Keys {
	t.Helper()
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestOIDCKeepsTheContract(t *testing.T) {
	keys := newKeys(t)
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		out := &kit.Output{}
		log := hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Trace, JSONFormat: true})
		s := authtest.Subject{Keys: keys, Rechecks: true, Heard: out.String, Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
			adapter := oidc.New()
			adapter.UseLogger(log)
			return adapter, func() { _ = adapter.Close() }, adapter.Configure(ctx, plugins.Config{JSON: json.RawMessage(authtest.Settings(p))})
		}}
		plugintest.Run(t, authtest.Checks(s), s)
	})
	t.Run("with every algorithm", func(t *testing.T) {
		t.Parallel()
		open := func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
			adapter := oidc.New()
			settings := strings.Replace(authtest.Settings(p), "{", `{"algorithms": ["RS256", "ES256", "EdDSA"], `, 1)
			err := adapter.Configure(ctx, plugins.Config{JSON: json.RawMessage(settings)})
			return adapter, func() { _ = adapter.Close() }, err
		}
		s := authtest.Subject{Open: open, Keys: keys, Rechecks: true}
		plugintest.Run(t, authtest.Checks(s), s)
	})
	t.Run("over the wire", func(t *testing.T) {
		t.Parallel()
		s := authtest.Subject{Open: overWire(t), Keys: keys, Rechecks: true}
		plugintest.Run(t, authtest.Checks(s), s)
	})
}
