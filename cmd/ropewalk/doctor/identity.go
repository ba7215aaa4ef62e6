package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
)

// checkIdentityProvider reads the provider's discovery document and keys, and compares clocks.
func (e *examination) checkIdentityProvider(ctx context.Context, a config.Auth) {
	var s struct {
		Issuer    string `json:"issuer"`
		IDPDomain string `json:"idpDomain"`
	}
	if json.Unmarshal(a.Settings.JSON(), &s) != nil {
		return
	}
	issuer := strings.TrimSuffix(s.Issuer, "/")
	if issuer == "" && s.IDPDomain != "" {
		issuer = "https://" + s.IDPDomain + ".authkit.app"
	}
	if issuer == "" {
		return
	}
	remedy := "check " + a.At + ".issuer, DNS and the firewall; the document must be served at <issuer>/.well-known/openid-configuration"
	var document struct {
		Issuer                string
		JWKSURI               string   `json:"jwks_uri"`
		AuthorizationEndpoint string   `json:"authorization_endpoint"`
		Scopes                []string `json:"scopes_supported"`
	}
	date, err := getJSON(ctx, issuer+"/.well-known/openid-configuration", &document)
	switch {
	case err != nil:
		e.add("identity", failed, issuer+": "+reason(err), remedy)
		return
	case strings.TrimSuffix(document.Issuer, "/") != issuer:
		e.add("identity", failed, fmt.Sprintf("the provider calls itself %q", document.Issuer), "set "+a.At+".issuer to exactly that")
		return
	}
	var keys struct{ Keys []json.RawMessage }
	if _, err := getJSON(ctx, document.JWKSURI, &keys); err != nil {
		e.add("identity", failed, fmt.Sprintf("no keys at %s: %s", document.JWKSURI, reason(err)), "tokens cannot be verified until the provider serves its keys")
		return
	}
	if len(keys.Keys) == 0 {
		e.add("identity", failed, "no keys at "+document.JWKSURI, "tokens cannot be verified until the provider serves its keys")
		return
	}
	e.add("identity", ok, fmt.Sprintf("%s, %d keys", issuer, len(keys.Keys)), "")
	e.checkScopes(a, document.Scopes)
	e.checkLogin(ctx, a, document.AuthorizationEndpoint)
	if skew := time.Since(date).Abs(); !date.IsZero() && skew > clockTolerance {
		e.add("clock", failed, fmt.Sprintf("differs from the provider's by %s", skew.Round(time.Second)), "synchronize the clock (NTP): tokens are refused otherwise")
	}
}

// checkScopes warns about configured scopes that the provider does not offer, if it says what it offers: no
// client asks for them.
func (e *examination) checkScopes(a config.Auth, offered []string) {
	if offered == nil {
		return
	}
	for _, scope := range a.Scopes {
		if !slices.Contains(offered, scope) {
			e.add("scopes", warning, fmt.Sprintf("%s.scopes: the provider does not offer %q (scopes_supported), so clients do not ask for it", a.At, scope),
				"take the scope out of "+a.At+".scopes, or create it at the provider")
		}
	}
}

// getJSON decodes a document and returns its server's time.
func getJSON(ctx context.Context, address string, into any) (time.Time, error) {
	res, err := get(ctx, address)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("%s returned %s", address, res.Status)
	}
	date, _ := http.ParseTime(res.Header.Get("Date")) // without a date, clocks are not compared
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(into); err != nil {
		return date, fmt.Errorf("%s: %w", address, err)
	}
	return date, nil
}

// checkLogin starts a login at the provider like a browser, but without a person: prompt=none. A provider that
// knows the client id and the redirect URI redirects the browser back, or to its login page.
func (e *examination) checkLogin(ctx context.Context, a config.Auth, endpoint string) {
	var s struct {
		ClientID    string `json:"clientId"`
		RedirectURI string `json:"redirectUri"`
	}
	if json.Unmarshal(a.Settings.JSON(), &s) != nil || s.ClientID == "" || s.RedirectURI == "" || endpoint == "" {
		return
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		return
	}
	query := at.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": s.ClientID, "redirect_uri": s.RedirectURI, "scope": "openid", "prompt": "none", "state": "doctor",
		"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256", // the example in RFC 7636
	} {
		query.Set(name, value)
	}
	at.RawQuery = query.Encode()
	remedy := fmt.Sprintf("register %[1]s.clientId at the provider with exactly the redirect URI of %[1]s.redirectUri, for the authorization code flow with PKCE", a.At)
	answer, err := loginAnswer(ctx, at.String(), s.RedirectURI)
	if err != nil {
		e.add("login", failed, fmt.Sprintf("%s: %s", endpoint, reason(err)), remedy)
		return
	}
	e.add("login", ok, answer, "")
}

// loginAnswer requests the start of a login and describes the provider's answer. It returns an error if the
// provider refuses.
func loginAnswer(ctx context.Context, address, redirectURI string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	client := httpClient()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	location, _ := url.Parse(res.Header.Get("Location")) // without one it is not a redirect
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		return "", fmt.Errorf("the provider refuses the client id or the redirect URI (%s)", res.Status)
	case location != nil && strings.HasPrefix(location.String(), redirectURI):
		switch reason := location.Query().Get("error"); reason {
		case "", "login_required", "interaction_required", "consent_required", "account_selection_required":
			return "the provider accepts the client id and the redirect URI", nil
		default:
			return "", fmt.Errorf("the provider returned %s %s", reason, location.Query().Get("error_description"))
		}
	}
	return "the provider shows its login page", nil
}
