package examples

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

// handle is what a host returns for any kind of plugin.
type handle interface{ Close(context.Context) }

func load(ctx context.Context, h *pluginhost.Host, kind plugins.Kind, p config.Plugin) (handle, error) {
	if kind == plugins.KindAuth {
		return h.Auth(ctx, p)
	}
	return h.SessionStore(ctx, p)
}

// wantProblems checks that starting and checking a plugin return the same problems with its settings.
func wantProblems(t *testing.T, kind plugins.Kind, path, settings string, want ...string) {
	t.Helper()
	h, _ := newHost(t)
	p := plugin(t, path, settings)
	_, started := load(t.Context(), h, kind, p)
	for name, err := range map[string]error{"a start": started, "a check": h.Check(t.Context(), kind, p)} {
		wrong, ok := errors.AsType[*plugins.ConfigError](err)
		if !ok {
			t.Errorf("%s returns %v, want problems with the settings", name, err)
			continue
		}
		var got []string
		for _, problem := range wrong.Problems {
			got = append(got, problem.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s returns\n  %q\nwant\n  %q", name, got, want)
		}
	}
	if len(h.Status()) != 0 {
		t.Error("a plugin with invalid settings should not be listed")
	}
}
