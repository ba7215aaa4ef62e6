package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// provider is the part of an identity provider's metadata that doctor reads.
type provider struct {
	Issuer                string
	JWKSURI               string   `json:"jwks_uri"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	Scopes                []string `json:"scopes_supported"`
}

// checkIdentityProvider reads the provider's discovery document and keys, and compares clocks.
func (e *examination) checkIdentityProvider(ctx context.Context, a config.Auth) {
	var s struct {
		Issuer              string `json:"issuer"`
		IDPDomain           string `json:"idpDomain"`
		JWKSURI             string `json:"jwksUri"`
		AllowPrivateNetwork bool   `json:"allowPrivateNetwork"`
	}
	if json.Unmarshal(a.Settings.JSON(), &s) != nil {
		return
	}
	issuer := s.Issuer
	switch {
	case issuer == "" && s.IDPDomain != "" && a.Adapter == "workos":
		issuer = "https://" + s.IDPDomain + ".authkit.app"
	case issuer == "" && s.IDPDomain != "":
		issuer = "https://" + s.IDPDomain
	case issuer == "":
		return
	}
	if address, remedy := refusedAddress(ctx, issuer, s.AllowPrivateNetwork); address != "" {
		e.add("identity", failed, issuer+": the server does not connect to "+address, fmt.Sprintf(remedy, a.At))
		return
	}
	document, date, err := readProvider(ctx, issuer)
	switch {
	case err != nil:
		e.add("identity", failed, issuer+": "+reason(err), providerRemedy(err, a.At))
		return
	case document.Issuer != issuer:
		e.add("identity", failed, fmt.Sprintf("the provider calls itself %q", document.Issuer), issuerRemedy(document.Issuer, a.At))
		return
	}
	address := cmp.Or(s.JWKSURI, document.JWKSURI)
	var keys struct{ Keys []json.RawMessage }
	if _, err := getJSON(ctx, providerClient(), address, &keys); err != nil {
		e.add("identity", failed, fmt.Sprintf("no keys at %s: %s", address, reason(err)), "tokens cannot be verified until the provider serves its keys")
		return
	}
	if len(keys.Keys) == 0 {
		e.add("identity", failed, "no keys at "+address, "tokens cannot be verified until the provider serves its keys")
		return
	}
	e.add("identity", ok, fmt.Sprintf("%s, %d keys", issuer, len(keys.Keys)), "")
	e.checkScopes(a, document.Scopes)
	e.checkLogin(ctx, a, document.AuthorizationEndpoint)
	if skew := time.Since(date).Abs(); !date.IsZero() && skew > clockTolerance {
		e.add("clock", failed, fmt.Sprintf("it differs from the provider's by %s", skew.Round(time.Second)), "synchronize the clock (NTP); until then, tokens are rejected")
	}
}

// readProvider reads a provider's metadata, and its clock, in the places where the adapters look. If no place has a
// document about the issuer, it returns what it found in the last one, where OpenID providers put it.
func readProvider(ctx context.Context, issuer string) (found provider, date time.Time, err error) {
	for _, place := range auth.MetadataURLs(issuer) {
		found = provider{}
		date, err = getJSON(ctx, providerClient(), place, &found)
		if err == nil && found.Issuer == issuer || err != nil && timedOut(err) { // the other places are on the same host
			break
		}
	}
	return found, date, err
}

// providerClient returns a client with the same rules as the adapters' clients: it uses no proxy and follows no redirect to
// another host.
func providerClient() *http.Client {
	transport := &http.Transport{DialContext: dialer().DialContext, TLSHandshakeTimeout: connectTime, DisableKeepAlives: true}
	return &http.Client{Timeout: answerTime, Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return fmt.Errorf("it redirects to %s://%s, and redirects to another host are not followed", r.URL.Scheme, r.URL.Host)
		}
		return nil
	}}
}

// issuerRemedy returns what to do if a provider's metadata names an issuer other than the configured one.
func issuerRemedy(stated, section string) string {
	if strings.Contains(stated, "{") { // Entra ID's document for all tenants, whose tokens have different issuers
		return "set " + section + ".issuer to the issuer of one tenant, with its id in place of the text in braces"
	}
	return "set " + section + ".issuer to exactly that, including any trailing slash"
}

// providerRemedy returns what to do if the provider's document could not be read.
func providerRemedy(err error, section string) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "give the provider a valid certificate, or add the authority that issued it to this machine's root certificates"
	}
	status, ok := errors.AsType[*statusError](err)
	switch {
	case ok && status.code >= http.StatusInternalServerError:
		return "the provider, or a proxy in front of it, is failing; nobody can log in until that is fixed"
	case ok:
		return "check " + section + ".issuer; the document must be served at <issuer>/.well-known/openid-configuration"
	}
	return "check " + section + ".issuer, DNS and the firewall; the document must be served at <issuer>/.well-known/openid-configuration"
}

// statusError is a response with a status other than 200.
type statusError struct {
	address, text string
	code          int
}

// Error implements error.
func (e *statusError) Error() string { return e.address + " returned " + e.text }

// refusedAddress returns one of the issuer's addresses, and the remedy, if adapters refuse to connect to all of them.
// doctor itself could connect, so its other checks would pass although nobody can log in.
func refusedAddress(ctx context.Context, issuer string, allowPrivate bool) (address, remedy string) {
	u, err := url.Parse(issuer)
	if err != nil || isLoopbackName(u.Hostname()) {
		return "", ""
	}
	limited, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	addresses, _ := net.DefaultResolver.LookupNetIP(limited, "ip", u.Hostname()) // a failure is reported with the first request
	for _, ip := range addresses {
		ip = ip.Unmap()
		switch {
		case ip.IsPrivate() && !allowPrivate:
			address, remedy = ip.String()+", which is on a private network", "set %s.allowPrivateNetwork: true if the provider is meant to be there"
		case ip.IsLoopback():
			address, remedy = ip.String()+", which is this machine, although the issuer's host name does not say so", "make the name in %[1]s.issuer resolve to another of this machine's addresses, and set %[1]s.allowPrivateNetwork: true if that is private"
		default:
			return "", ""
		}
	}
	return address, remedy
}

// isLoopbackName reports whether a host in the configuration is obviously this machine, without
// resolving it.
func isLoopbackName(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// checkScopes warns about configured scopes that the provider does not offer, if it lists what it offers. No
// client requests them.
func (e *examination) checkScopes(a config.Auth, offered []string) {
	if offered == nil {
		return
	}
	for _, scope := range a.Scopes {
		if !slices.Contains(offered, scope) {
			e.add("scopes", warning, fmt.Sprintf("%s.scopes: the provider does not offer %q (scopes_supported), so clients do not request it", a.At, scope),
				"remove the scope from "+a.At+".scopes, or create it at the provider")
		}
	}
}

// getJSON decodes a document and returns its server's time.
func getJSON(ctx context.Context, client *http.Client, address string, into any) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return time.Time{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return time.Time{}, &statusError{address, res.Status, res.StatusCode}
	}
	date, _ := http.ParseTime(res.Header.Get("Date")) // without a date, clocks are not compared
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(into); err != nil {
		return date, fmt.Errorf("%s: %w", address, err)
	}
	return date, nil
}

// checkLogin starts a login with the provider, like a browser but without a person (prompt=none). A provider
// that knows the client id and the redirect URI redirects the browser back, or to its login page.
func (e *examination) checkLogin(ctx context.Context, a config.Auth, endpoint string) {
	var s struct {
		ClientID    string `json:"clientId"`
		RedirectURI string `json:"redirectUri"`
	}
	if json.Unmarshal(a.Settings.JSON(), &s) != nil {
		return
	}
	if s.RedirectURI == "" && e.config.HTTP.BaseURL != "" {
		s.RedirectURI = e.config.HTTP.BaseURL + "/v1/auth/callback"
	}
	if s.ClientID == "" || s.RedirectURI == "" || endpoint == "" {
		return
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		return
	}
	query := at.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": s.ClientID, "redirect_uri": s.RedirectURI, "scope": cmp.Or(strings.Join(a.Scopes, " "), "openid profile email"), "prompt": "none", "state": "doctor",
		"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256", // the example in RFC 7636
	} {
		query.Set(name, value)
	}
	at.RawQuery = query.Encode()
	remedy := fmt.Sprintf("register %s.clientId at the provider with exactly the redirect URI %s, for the authorization code flow with PKCE", a.At, s.RedirectURI)
	answer, err := loginResponse(ctx, at.String(), s.RedirectURI)
	if _, busy := errors.AsType[*statusError](err); busy { // says nothing about the client
		remedy = "the provider, or a proxy in front of it, is failing or limits requests; run doctor again once that is over"
	}
	if err != nil {
		e.add("login", failed, fmt.Sprintf("%s: %s", endpoint, reason(err)), remedy)
		return
	}
	e.add("login", ok, answer, "")
}

// loginResponse requests the start of a login and describes the provider's response. It returns an error if the
// provider refuses, and a statusError if it is failing or limits requests.
func loginResponse(ctx context.Context, address, redirectURI string) (string, error) {
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
	case res.StatusCode >= http.StatusInternalServerError || res.StatusCode == http.StatusTooManyRequests:
		return "", &statusError{"the provider's login page", res.Status, res.StatusCode}
	case res.StatusCode >= http.StatusBadRequest:
		return "", fmt.Errorf("the provider may have refused the client id or the redirect URI (%s)", res.Status)
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
