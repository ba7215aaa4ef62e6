package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

const (
	maxDocument = 1 << 20 // bytes of a metadata document
	maxServers  = 5       // authorization servers to try for one app
	maxScopes   = 100     // scopes to request
)

// offline is the scope for long-lived tokens (OpenID Connect Core 1.0 section 11).
const offline = "offline_access"

const google = "https://accounts.google.com"

// server is the metadata of an authorization server, and what an app needs from it.
type server struct {
	Issuer     string   `json:"issuer"`
	Authorize  string   `json:"authorization_endpoint"`
	Token      string   `json:"token_endpoint"`
	Register   string   `json:"registration_endpoint"`
	Device     string   `json:"device_authorization_endpoint"`
	Revoke     string   `json:"revocation_endpoint"`
	Challenges []string `json:"code_challenge_methods_supported"`
	Methods    []string `json:"token_endpoint_auth_methods_supported"`
	Scopes     []string `json:"scopes_supported"`
	Documents  bool     `json:"client_id_metadata_document_supported"`
	StatesIss  bool     `json:"authorization_response_iss_parameter_supported"`
	ProofAlgs  []string `json:"dpop_signing_alg_values_supported"`

	Resource string   `json:"-"` // the app's resource identifier (RFC 9728)
	Servers  []string `json:"-"` // the issuers that the app names
	Proofs   bool     `json:"-"` // the app wants tokens that are bound to a key (DPoP, RFC 9449)
	Wanted   []string `json:"-"` // the scopes that the app asks for
	Private  bool     `json:"-"` // it may be at a private address because the app is
}

// resourceMetadata is the document of RFC 9728.
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Proofs   bool     `json:"dpop_bound_access_tokens_required"`
}

// Discover implements apps.Accounts.
func (m *Manager) Discover(ctx context.Context, r core.Remote, c remote.Challenge) bool {
	_, private, err := remote.Probe(ctx, r, m.client(r.AllowPrivate))
	if err == nil {
		_, err = m.discoverWith(ctx, r, c, private)
	}
	if err != nil {
		m.log.Debug("no authorization server found for a remote app", "reason", core.TextOf(err))
	}
	return err == nil
}

// discover finds the authorization server of an app (MCP 2025-11-25, authorization). The app rejects a request without
// credentials and names its metadata (RFC 9728). The metadata names the authorization server, which describes itself
// (RFC 8414 or OpenID Connect Discovery).
func (m *Manager) discover(ctx context.Context, r core.Remote) (server, error) {
	challenge, private, err := remote.Probe(ctx, r, m.client(r.AllowPrivate))
	if err != nil {
		return server{}, core.Wrap(core.CodeUnavailable, err, "the app cannot be reached to find its authorization server: "+err.Error())
	}
	return m.discoverWith(ctx, r, challenge, private)
}

// discoverWith is discover with the challenge of an app. private reports whether the app is at a private address. Only
// then may its authorization server be at one too. Otherwise, a public app could make this server send requests into
// its own private network.
func (m *Manager) discoverWith(ctx context.Context, r core.Remote, challenge remote.Challenge, private bool) (server, error) {
	private = private && r.AllowPrivate
	app, err := url.Parse(r.URL)
	if err != nil {
		return server{}, err
	}
	app.Fragment, app.RawFragment = "", "" // no request and no resource identifier (RFC 8707) has a fragment
	about, err := m.resource(ctx, app, challenge.Metadata, private)
	if err != nil {
		return server{}, err
	}
	var failed error
	for _, issuer := range about.Servers[:min(len(about.Servers), maxServers)] {
		s, err := m.describe(ctx, issuer, private)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s.Resource, s.Servers, s.Private, s.Proofs = about.Resource, about.Servers, private, challenge.Proofs || about.Proofs
		if s.Proofs && !slices.Contains(s.ProofAlgs, remote.ProofAlgorithm) {
			failed = errors.Join(failed, fmt.Errorf("the app wants tokens that are bound to a key (DPoP), but %s does not announce support for DPoP with %s (dpop_signing_alg_values_supported)", hostOf(s.Issuer), remote.ProofAlgorithm))
			continue
		}
		s.Wanted = scopesFor(r, challenge, about, s)
		return s, nil
	}
	if failed == nil {
		failed = errors.New("the app does not name an authorization server")
	}
	return server{}, core.Wrap(core.CodeUnavailable, failed, "the app's authorization server cannot be used: "+failed.Error())
}

// scopesFor returns the scopes to request: those that the operator configured, or else those that the app named when it
// refused a request, or else those in its metadata. Unless the operator configured them, it adds offline_access, for
// long-lived tokens, if the server supports it.
func scopesFor(r core.Remote, challenge remote.Challenge, about resourceMetadata, s server) []string {
	wanted := strings.Fields(r.Auth.Scopes)
	if len(wanted) == 0 {
		wanted = strings.Fields(challenge.Scope)
	}
	if len(wanted) == 0 {
		wanted = about.Scopes
	}
	if len(r.Auth.Scopes) == 0 && slices.Contains(s.Scopes, offline) {
		wanted = append(slices.Clone(wanted), offline)
	}
	return validScopes(wanted)
}

// validScopes returns the valid scopes without duplicates, at most maxScopes.
func validScopes(all []string) (valid []string) {
	for _, scope := range all {
		if core.ValidScope(scope) && !slices.Contains(valid, scope) && len(valid) < maxScopes {
			valid = append(valid, scope)
		}
	}
	return valid
}

// resource returns the protected resource metadata of an app, from the address that the app named, from the well-known
// path with the app's path appended, or from the well-known path at the root. An app without metadata is its own
// authorization server (MCP 2025-03-26).
func (m *Manager) resource(ctx context.Context, app *url.URL, named string, private bool) (resourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	candidates := []string{at(app, wellKnown+strings.TrimSuffix(app.EscapedPath(), "/")), at(app, wellKnown)}
	if named != "" {
		candidates = slices.Insert(candidates, 0, named)
	}
	for _, address := range slices.Compact(candidates) {
		var about resourceMetadata
		err := m.getJSON(ctx, address, private, &about)
		switch {
		case errors.Is(err, errNoDocument), errors.Is(err, errInvalid):
			continue
		case err != nil:
			return about, core.Wrap(core.CodeUnavailable, err, "the app's metadata cannot be read: "+err.Error())
		case !remote.Covers(about.Resource, app):
			return about, core.Errorf(core.CodeUnavailable, "the app's metadata is for %.200q, which is a different resource", about.Resource)
		}
		return about, nil
	}
	return resourceMetadata{Resource: app.String(), Servers: []string{app.Scheme + "://" + app.Host}}, nil
}

// at returns the URL of a path on the host of u.
func at(u *url.URL, path string) string { return u.Scheme + "://" + u.Host + path }

// describe reads the metadata of an authorization server, and returns an error if the server cannot be used safely.
func (m *Manager) describe(ctx context.Context, issuer string, private bool) (server, error) {
	u, err := url.Parse(issuer)
	if err == nil {
		err = checkEndpoint("issuer", issuer, private)
	}
	if err != nil {
		return server{}, err
	}
	var invalid error
	for _, address := range metadataOf(u) {
		var s server
		err := m.getJSON(ctx, address, private, &s)
		switch {
		case errors.Is(err, errNoDocument):
		case errors.Is(err, errInvalid):
			invalid = err
		case err != nil:
			return s, err
		default:
			return s, s.check(issuer, private)
		}
	}
	if invalid != nil {
		return server{}, invalid
	}
	return server{}, fmt.Errorf("%s does not publish metadata (RFC 8414)", u.Host)
}

// metadataOf returns the possible addresses of an issuer's metadata. RFC 8414 inserts the well-known path before the
// issuer's path and OpenID Connect Discovery appends it, but some servers do it the other way around.
func metadataOf(issuer *url.URL) []string {
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	all := []string{at(issuer, oauth+path), at(issuer, openid+path), at(issuer, path+openid), at(issuer, path+oauth)}
	if path == "" {
		return all[:2]
	}
	return all
}

// check returns an error if the metadata belongs to another issuer, the server does not support PKCE, or an endpoint
// address must not be used.
func (s server) check(issuer string, private bool) error {
	switch {
	case strings.TrimSuffix(s.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
		return fmt.Errorf("the metadata of %.200q names another issuer, %.200q", issuer, s.Issuer)
	case !slices.Contains(s.Challenges, "S256"):
		return fmt.Errorf("%.200q does not announce support for PKCE with S256 (code_challenge_methods_supported)", issuer)
	case s.Authorize == "" || s.Token == "":
		return fmt.Errorf("%.200q has no authorization_endpoint or no token_endpoint", issuer)
	}
	if u, err := url.Parse(s.Authorize); err == nil {
		for name := range u.Query() {
			if isOwnParameter(name) { // if a parameter appears twice, servers differ in which one they use
				return fmt.Errorf("authorization_endpoint %.200q already has the parameter %s", s.Authorize, name)
			}
		}
	}
	for _, endpoint := range []struct{ name, address string }{
		{"authorization_endpoint", s.Authorize}, {"token_endpoint", s.Token}, {"registration_endpoint", s.Register}, {"revocation_endpoint", s.Revoke},
		{"device_authorization_endpoint", s.Device},
	} {
		if err := checkEndpoint(endpoint.name, endpoint.address, private); err != nil && endpoint.address != "" {
			return err
		}
	}
	return nil
}

// isOwnParameter reports whether this server sets a parameter in authorization requests, or the parameter could
// override one that it sets.
func isOwnParameter(name string) bool {
	switch name {
	case "client_id", "redirect_uri", "response_type", "response_mode", "state", "scope", "resource", "prompt",
		"code_challenge", "code_challenge_method", "dpop_jkt", "request", "request_uri":
		return true
	}
	return false
}

// notInHost reports whether no host has this character in the form that browsers send. net/url also accepts characters
// that would end a source in a Content-Security-Policy.
func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
}

// checkEndpoint returns an error unless the address uses https. Authorization servers of apps at private addresses may
// use http.
func checkEndpoint(name, address string, private bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.ContainsFunc(u.Host, notInHost):
		return fmt.Errorf("%s %.200q is not a URL", name, address)
	case u.Scheme != "https" && (u.Scheme != "http" || !private):
		return fmt.Errorf("%s %.200q is not an https URL", name, address)
	}
	return nil
}

// errNoDocument means that an address has no document, and errInvalid that something other than a document is
// there, such as the page that some servers return for every unknown path.
var (
	errNoDocument = errors.New("there is no document")
	errInvalid    = errors.New("did not send a valid JSON object")
)

// getJSON fetches a JSON document of at most maxDocument bytes.
func (m *Manager) getJSON(ctx context.Context, address string, private bool, into any) error {
	if err := checkEndpoint("metadata", address, private); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := m.client(private).Do(request)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", request.URL.Host, remote.SafeError(err))
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode >= 400 && response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests:
		return errNoDocument
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s returned %d", request.URL.Host, response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s did not send its whole response", request.URL.Host)
	case len(data) > maxDocument:
		return fmt.Errorf("%s sent more than %d bytes", request.URL.Host, maxDocument)
	case json.Unmarshal(data, into) != nil:
		return fmt.Errorf("%s %w", request.URL.Host, errInvalid)
	}
	return nil
}
