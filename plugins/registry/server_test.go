package registry_test

import (
	"errors"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
)

// unasked is a registry that panics on every call.
type unasked struct{ registry.Registry }

func TestARegistryPluginReceivesOnlyValidCalls(t *testing.T) {
	conn := plugintest.Configured(t, registry.Plugin(unasked{}), "")
	client := registry.Client(conn)
	_, err := client.Resolve(t.Context(), registry.Ref{})
	invalid(t, "a resolve without a name", err)
	_, err = client.Fetch(t.Context(), registry.Package{Kind: registry.KindNPM})
	invalid(t, "a fetch of an npm package", err)
	_, err = registryv1.NewRegistryServiceClient(host.Wrap(conn)).Search(t.Context(), &registryv1.SearchRequest{Limit: 101})
	invalid(t, "a search for 101 bundles", err)
}

func invalid(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, plugins.ErrInvalid) {
		t.Errorf("%s: got %v", what, err)
	}
}
