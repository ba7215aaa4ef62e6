package server

import (
	"net"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

func TestATokensAudienceMayBeAnyAddressOfTheServer(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 27247}
	for name, c := range map[string]struct {
		config   config.Config
		has, not []string
	}{
		"without a base URL": {
			config.Config{},
			[]string{"http://127.0.0.1:27247", "http://127.0.0.1:27247/", "http://localhost:27247/mcp", "https://localhost:27247"},
			[]string{"http://127.0.0.1", "", "/mcp"},
		},
		"with a base URL, only that one": {
			config.Config{HTTP: config.HTTP{BaseURL: "https://a.example"}},
			[]string{"https://a.example", "https://a.example/", "https://a.example/mcp"},
			[]string{"http://127.0.0.1:27247", "http://a.example"},
		},
		"additional allowed hosts": {
			config.Config{HTTP: config.HTTP{AllowedHosts: []string{"b.example:8443"}}},
			[]string{"https://b.example:8443/mcp"}, []string{"https://b.example/mcp"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := audiences(&c.config, loopback)
			for _, want := range c.has {
				if !slices.Contains(got, want) {
					t.Errorf("%q is not among %q", want, got)
				}
			}
			for _, unwanted := range c.not {
				if slices.Contains(got, unwanted) {
					t.Errorf("%q is among %q", unwanted, got)
				}
			}
		})
	}
}

func TestOneProvidersAudiencesAreNotAnothers(t *testing.T) {
	got := providersOf(&config.Config{Auth: []config.Auth{
		{Plugin: config.Plugin{Name: "one"}, ClientID: "client", Audiences: []string{"more"}},
		{Plugin: config.Plugin{Name: "two"}, AnyAudience: true},
	}}, make([]pluginhost.Member[*pluginhost.Auth], 2))
	if !slices.Equal(got[0].Audiences, []string{"more", "client"}) || got[0].AnyAudience || len(got[1].Audiences) != 0 || !got[1].AnyAudience {
		t.Errorf("got %+v", got)
	}
}
