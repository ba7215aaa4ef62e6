package auth_test

import (
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestDocumentsAreServedAtTheirWellKnownPaths(t *testing.T) {
	for _, c := range []struct {
		issuer string
		want   []string
	}{
		{"https://id.example.com", []string{
			"https://id.example.com/.well-known/oauth-authorization-server",
			"https://id.example.com/.well-known/openid-configuration",
		}},
		{"https://id.example.com/", []string{
			"https://id.example.com/.well-known/oauth-authorization-server",
			"https://id.example.com/.well-known/openid-configuration",
		}},
		{"https://id.example.com:8443/realms/one", []string{
			"https://id.example.com:8443/.well-known/oauth-authorization-server/realms/one",
			"https://id.example.com:8443/.well-known/openid-configuration/realms/one",
			"https://id.example.com:8443/realms/one/.well-known/openid-configuration",
		}},
		{"https://[", nil},
	} {
		if got := auth.MetadataURLs(c.issuer); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.issuer, got, c.want)
		}
	}
}
