package oidc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
)

func TestInvalidSettingsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "issuer: must be set",
		`{"issuer":"https://a.example","idpDomain":"a.example"}`:                     "idpDomain: means the same",
		`{"idpDomain":"https://a.example"}`:                                          "idpDomain: must be a host",
		`{"issuer":"http://a.example"}`:                                              "issuer: must be an https URL",
		`{"issuer":"a.example"}`:                                                     "issuer: must be an absolute URL",
		`{"issuer":"https://a.example/.well-known/openid-configuration"}`:            "issuer: must be the issuer itself",
		`{"issuer":"https://a.example?x=1"}`:                                         "issuer: must not have a query",
		`{"issuer":"https://a.example:99999"}`:                                       "issuer: has a port that is not from 1 to 65535",
		`{"issuer":"https://u:hidden@a.example"}`:                                    "issuer: must not contain a user",
		`{"issuer":"https://a.example","jwksUri":"http://127.0.0.1/jwks"}`:           "jwksUri: may be on loopback only if",
		`{"issuer":"https://a.example","redirectUri":"https://r.example/cb"}`:        "clientId: must be set if redirectUri is",
		`{"issuer":"https://a.example","clientSecret":"hidden"}`:                     "clientId: must be set if clientSecret is",
		`{"issuer":"https://a.example","introspect":true,"clientId":"c"}`:            "introspect: needs clientId and clientSecret",
		`{"issuer":"https://a.example","scopes":["email"]}`:                          `scopes: must contain "openid"`,
		`{"issuer":"https://a.example","organizationId":"o","organizationClaim":""}`: "organizationClaim: must name the claim",
		`{"issuer":"https://a.example","roles":{"boss":"admin"}}`:                    "roleClaim: must name the claim",
		`{"issuer":"https://a.example","roleClaim":"r","roles":{"boss":"root"}}`:     "roles.boss: must be owner, admin or member",
		`{"issuer":"https://a.example","algorithms":[]}`:                             "algorithms: must name at least one",
		`{"issuer":"https://a.example","algorithms":["RS256","HS256"]}`:              "algorithms[1]: must be RS256, ES256 or EdDSA",
		`{"issuer":"https://a.example","introspect":true,"clientSecret":"hidden"}`:   "introspect: needs clientId and clientSecret",
		`{"issuer":"https://a.example","clientID":"c"}`:                              `did you mean "clientId"`,
		`{"issuer":"https://a.example","scopes":"openid"}`:                           "scopes: must be a list",
		`{"issuer":"https://a.example","clientId":"c","clientId":"d"}`:               "clientId: is given twice",
		`{"issuer":"https://a.example","audiences":[1]}`:                             "audiences[0]: must be a string",
		`{"issuer":"https://a.example","allowPrivateNetwork":"yes"}`:                 "allowPrivateNetwork: must be true or false",
	} {
		if err := oidc.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(text)}); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("%s: configured with %v", text, err)
		}
		err := oidc.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(text)})
		if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprint(err), "hidden") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestValidSettingsAreAccepted(t *testing.T) {
	for _, text := range []string{
		`{"issuer":"https://a.example","jwksUri":"https://keys.a.example/jwks"}`,
		`{"issuer":"http://127.0.0.1:1","jwksUri":"http://127.0.0.1:1/jwks"}`,
		`{"issuer":"https://a.example","clientId":"c","clientSecret":"s","redirectUri":"https://r.example/cb","introspect":true}`,
		`{"issuer":"https://a.example","clientId":"c","algorithms":["ES256","EdDSA"],"organizationId":"o","roleClaim":"r","roles":{"boss":"owner"}}`,
	} {
		if err := oidc.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(text)}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDescribeListsTheSettings(t *testing.T) {
	for text, want := range map[string]string{
		`{"idpDomain":"id.example.com"}`:                                                                             "{https://id.example.com [https://id.example.com] [] false [RS256] [openid profile email]}",
		`{"issuer":"https://id.example.com/realm","audiences":["x"]}`:                                                "{https://id.example.com/realm [https://id.example.com/realm] [x] false [RS256] [openid profile email]}",
		`{"issuer":"http://localhost:8080","clientId":"c","clientSecret":"s","redirectUri":"http://localhost:1/cb"}`: "{http://localhost:8080 [http://localhost:8080] [c] true [RS256] [openid profile email]}",
	} {
		adapter := oidc.New()
		if err := adapter.Configure(t.Context(), plugins.Config{JSON: json.RawMessage(text)}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			d, err := adapter.Describe(t.Context())
			if err != nil || fmt.Sprint(d) != want {
				t.Errorf("%s: got %v, %v, want %s", text, d, err, want)
			}
			for _, list := range [][]string{d.AuthorizationServers, d.Audiences, d.Algorithms, d.Scopes} {
				clear(list) // the caller may change the list
			}
		}
		_ = adapter.Close()
	}
}

func TestAnAdapterThatWasNeverConfiguredCanBeClosed(t *testing.T) {
	if err := oidc.New().Close(); err != nil {
		t.Error(err)
	}
}
