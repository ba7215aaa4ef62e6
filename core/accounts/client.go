package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// The ways in which a client authenticates to a token endpoint (RFC 7591).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// ClientPath is the path of this server's Client ID Metadata Document. CallbackPath is the path to which authorization
// servers redirect browsers.
const (
	ClientPath   = "/v1/accounts/client"
	CallbackPath = "/v1/accounts/callback"
)

// maxInstant is the last second of the year 9999, the latest time that Go encodes as JSON. A server that sends
// milliseconds instead of seconds would exceed it.
const maxInstant = 253402300799

// MarkParameter is the parameter of CallbackPath that marks an authorization server.
const MarkParameter = "server"

// ClientDocument describes this server as an OAuth client: it is its Client ID Metadata Document, and the metadata that
// it registers with (RFC 7591).
type ClientDocument struct {
	ID            string   `json:"client_id,omitempty"`
	Name          string   `json:"client_name"`
	URI           string   `json:"client_uri,omitempty"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Method        string   `json:"token_endpoint_auth_method"`
	Type          string   `json:"application_type"`
	Scope         string   `json:"scope,omitempty"`
}

// newDocument describes a client with a redirect URI. If redirectURI is empty, the client is for logins with a code.
func newDocument(redirectURI string) ClientDocument {
	if redirectURI == "" {
		return ClientDocument{Name: "Ropewalk", RedirectURIs: []string{}, GrantTypes: []string{deviceGrant, "refresh_token"}, ResponseTypes: []string{}, Method: methodNone, Type: "native"}
	}
	d := ClientDocument{
		Name: "Ropewalk", RedirectURIs: []string{redirectURI}, GrantTypes: []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, Method: methodNone, Type: "web",
	}
	if u, err := url.Parse(redirectURI); err == nil {
		d.URI = u.Scheme + "://" + u.Host
		if u.Scheme == "http" { // an address of this machine, which only native clients may use
			d.Type = "native"
		}
	}
	return d
}

// Document returns the Client ID Metadata Document, or core.CodeNotFound if the server has no public https address where
// authorization servers can read it.
func (m *Manager) Document() (ClientDocument, error) {
	if !m.isPublic() {
		return ClientDocument{}, core.Errorf(core.CodeNotFound, "this server has no public https address (http.baseUrl)")
	}
	d := newDocument(m.o.BaseURL + CallbackPath)
	d.ID = m.o.BaseURL + ClientPath
	return d, nil
}

// isPublic reports whether authorization servers can presumably reach the configured address.
func (m *Manager) isPublic() bool {
	u, err := url.Parse(m.o.BaseURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "localhost" || !strings.Contains(u.Hostname(), ".") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback() && !ip.IsPrivate()
}

// clientFor returns the client that this server uses with an authorization server: the one that the operator
// configured for the app, the one that the metadata document describes, or one that it registers.
//
// The document is the same for every authorization server, and each accepts any redirect URI in it. It therefore
// contains only the URI whose responses must contain the issuer. Otherwise, a hostile server could redirect a browser
// to an honest server that does not do this, and would then be sent that server's code. For the same reason, it does
// not allow device logins: anyone who gets a person to enter an honest server's code would get the tokens. Each
// device login registers its own client, so that the login it replaces can be revoked without ending the new one.
func (m *Manager) clientFor(ctx context.Context, in core.Installation, s server, redirectURI string) (core.OAuthClient, error) {
	auth := in.Remote.Auth
	switch {
	case auth.ClientID != "":
		if err := m.bind(ctx, in, s.Issuer); err != nil {
			return core.OAuthClient{}, err
		}
		return core.OAuthClient{ID: auth.ClientID, Secret: auth.ClientSecret, Method: methodFor(auth.ClientSecret, "", s)}, nil
	case s.Documents && s.StatesIss && m.isPublic() && redirectURI == m.o.BaseURL+CallbackPath:
		return core.OAuthClient{ID: m.o.BaseURL + ClientPath, Method: methodNone}, nil
	case s.Register == "":
		byHand, _, _ := strings.Cut(redirectURI, "?") // without the parameter that markOf adds
		return core.OAuthClient{}, core.Errorf(core.CodeNotConfigured, "%s does not register clients: register this server there by hand, with the redirect URI %s, and install the app with transport.auth.clientId", hostOf(s.Issuer), byHand)
	}
	if redirectURI == "" {
		return m.register(ctx, s, "")
	}
	r := core.ClientRegistration{Workspace: in.Workspace, App: in.Name, Issuer: s.Issuer, RedirectURI: redirectURI}
	known, err := m.o.Store.OAuthClient(ctx, r)
	switch {
	case err == nil && (known.ExpiresAt.IsZero() || time.Until(known.ExpiresAt) > time.Hour):
		return known, nil
	case err != nil && core.CodeOf(err) != core.CodeNotFound:
		return known, err
	}
	registered, err := m.register(ctx, s, redirectURI)
	if err != nil {
		return registered, err
	}
	return registered, m.o.Store.PutOAuthClient(ctx, r, registered)
}

// bind returns an error if the client that the operator configured for an app belongs to a different authorization
// server. The app names its server, so it could name one that wants to steal the client's secret or the right server's
// codes. If the configuration does not name the issuer, the first login fixes it: the issuer is stored as the ID of a
// client registration that has no issuer.
func (m *Manager) bind(ctx context.Context, in core.Installation, issuer string) error {
	own := in.Remote.Auth.Issuer
	if own == "" {
		r := core.ClientRegistration{Workspace: in.Workspace, App: in.Name, RedirectURI: in.Remote.Auth.ClientID}
		first, err := m.o.Store.OAuthClient(ctx, r)
		switch {
		case core.CodeOf(err) == core.CodeNotFound:
			return m.o.Store.PutOAuthClient(ctx, r, core.OAuthClient{ID: issuer})
		case err != nil:
			return err
		}
		own = first.ID
	}
	if strings.TrimSuffix(own, "/") != strings.TrimSuffix(issuer, "/") {
		return core.Errorf(core.CodeForbidden, "app %s names the authorization server %.200q, but its transport.auth.clientId is for %.200q. If the app has moved, set its transport.auth.issuer to the new one", in.Name, issuer, own)
	}
	return nil
}

// methodFor returns how a client authenticates: with the method it was registered for, or else one that the server
// supports.
func methodFor(secret core.Secret, registered string, s server) string {
	switch {
	case secret == "":
		return methodNone
	case registered == methodBasic || registered == methodPost:
		return registered
	case len(s.Methods) == 0 || slices.Contains(s.Methods, methodBasic): // the default (RFC 8414 section 2)
		return methodBasic
	}
	return methodPost
}

// register registers this server as a client (RFC 7591). Some servers respond with 200 instead of 201.
func (m *Manager) register(ctx context.Context, s server, redirectURI string) (core.OAuthClient, error) {
	d := newDocument(redirectURI)
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, methodNone) {
		d.Method = methodFor("a secret", "", s)
	}
	d.Scope = strings.Join(s.Wanted, " ")
	body, err := json.Marshal(d)
	if err != nil {
		return core.OAuthClient{}, err
	}
	status, body, err := m.post(ctx, s.Private, s.Register, "application/json", "", body)
	if err != nil {
		return core.OAuthClient{}, core.Wrap(core.CodeUnavailable, err, err.Error())
	}
	var registered struct {
		ID      string  `json:"client_id"`
		Secret  string  `json:"client_secret"`
		Expires float64 `json:"client_secret_expires_at"`
		Method  string  `json:"token_endpoint_auth_method"`
		Error   string  `json:"error"`
	}
	bad := json.Unmarshal(body, &registered) != nil
	switch {
	case status != http.StatusOK && status != http.StatusCreated:
		return core.OAuthClient{}, core.Errorf(core.CodeUnavailable, "%s did not register this server as a client: it returned %d %.100q. If it does not register clients, register this server there by hand, and install the app with transport.auth.clientId",
			hostOf(s.Issuer), status, registered.Error)
	case bad || registered.ID == "" || len(registered.ID) > 4096 || len(registered.Secret) > 4096:
		return core.OAuthClient{}, core.Errorf(core.CodeUnavailable, "%s did not register this server as a client: its response has no client_id", hostOf(s.Issuer))
	}
	c := core.OAuthClient{ID: registered.ID, Secret: core.Secret(registered.Secret), Method: methodFor(core.Secret(registered.Secret), registered.Method, s)}
	if registered.Method == methodNone {
		c.Secret, c.Method = "", methodNone
	}
	if registered.Expires > 0 {
		c.ExpiresAt = time.Unix(int64(min(registered.Expires, maxInstant)), 0)
	}
	return c, nil
}

// postForm sends a form to an endpoint of an authorization server. It authenticates as the client that a grant belongs to.
func (m *Manager) postForm(ctx context.Context, g core.Grant, address string, form url.Values) (status int, content []byte, err error) {
	basic := ""
	if g.Client.Method == methodBasic {
		basic = url.QueryEscape(g.Client.ID) + ":" + url.QueryEscape(g.Client.Secret.Reveal())
	} else {
		form.Set("client_id", g.Client.ID)
		if g.Client.Secret != "" {
			form.Set("client_secret", g.Client.Secret.Reveal())
		}
	}
	return m.post(ctx, g.Private, address, "application/x-www-form-urlencoded", basic, []byte(form.Encode()))
}

// post sends a body to an endpoint of an authorization server. basic contains the user name and password for
// basic authentication, or is empty.
func (m *Manager) post(ctx context.Context, private bool, address, media, basic string, body []byte) (status int, content []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", media)
	request.Header.Set("Accept", "application/json")
	if user, password, ok := strings.Cut(basic, ":"); ok {
		request.SetBasicAuth(user, password)
	}
	response, err := m.client(private).Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("%s cannot be reached: %w", request.URL.Host, remote.SafeError(err))
	}
	defer func() { _ = response.Body.Close() }()
	if content, err = io.ReadAll(io.LimitReader(response.Body, maxDocument)); err != nil {
		return 0, nil, fmt.Errorf("%s did not send its whole response", request.URL.Host)
	}
	return response.StatusCode, content, nil
}

// hostOf returns the host of an address, for messages.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the authorization server"
	}
	return u.Host
}
