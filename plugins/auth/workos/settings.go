package workos

import (
	"regexp"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth/internal/relyingparty"
)

// Settings are the adapter's settings.
type Settings struct {
	// IDPDomain is the subdomain of the AuthKit domain: https://<idpDomain>.authkit.app.
	IDPDomain string `json:"idpDomain"`
	// Issuer replaces that URL if the AuthKit has a custom domain.
	Issuer string `json:"issuer"`
	// ClientID enables browser login, and is also an audience.
	ClientID string `json:"clientId"`
	// ClientSecret is empty for a public client.
	ClientSecret plugins.Secret `json:"clientSecret"`
	// RedirectURI is {base_url}/v1/auth/callback; the server's own value takes precedence.
	RedirectURI string `json:"redirectUri"`
	// OrganizationID admits only members of that organization.
	OrganizationID string `json:"organizationId"`
	// APIKey is used to ask WorkOS about memberships. The server sets it from WORKOS_API_KEY.
	APIKey plugins.Secret `json:"apiKey"`
	// APIURL is the base URL of the WorkOS API.
	APIURL string `json:"apiUrl"`
	// Audiences are accepted in addition to the server's own and the client id.
	Audiences []string `json:"audiences"`
}

func defaults() Settings { return Settings{APIURL: "https://api.workos.com"} }

// Check enforces the rules that types do not express.
func (s *Settings) Check(problems *plugins.ConfigError) {
	switch {
	case s.IDPDomain == "" && s.Issuer == "":
		problems.Add("idpDomain", "must be set to the subdomain of your AuthKit domain: example for https://example.authkit.app")
	case s.IDPDomain != "" && s.Issuer != "":
		problems.Add("issuer", "means the same as idpDomain: leave one of them out")
	case s.IDPDomain != "" && !regexp.MustCompile(`^[a-zA-Z0-9-]{1,63}$`).MatchString(s.IDPDomain):
		problems.Add("idpDomain", "must be the subdomain alone: example for https://example.authkit.app")
	}
	for path, address := range map[string]string{"issuer": s.Issuer, "redirectUri": s.RedirectURI, "apiUrl": s.APIURL} {
		if err := relyingparty.CheckURL(address); address != "" && err != nil {
			problems.Add(path, "%v", err)
		}
	}
	if s.APIURL == "" {
		problems.Add("apiUrl", "must not be empty; leave it out for https://api.workos.com")
	}
	if s.RedirectURI != "" && s.ClientID == "" {
		problems.Add("clientId", "must be set if redirectUri is")
	}
	if s.ClientSecret != "" && s.ClientID == "" {
		problems.Add("clientId", "must be set if clientSecret is")
	}
}

func (s *Settings) issuer() string {
	if s.Issuer != "" {
		return s.Issuer
	}
	return "https://" + s.IDPDomain + ".authkit.app"
}
