package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
)

// Clients returns this contract's clients by protocol version.
func Clients() map[int]func(grpc.ClientConnInterface) Adapter {
	return map[int]func(grpc.ClientConnInterface) Adapter{1: Client}
}

// Client returns the adapter at the other end of conn, which uses protocol version 1. It hides the types of the
// protocol. It always has the methods of Login, Revoker and Sessions; if a plugin lacks a capability, its methods
// return plugins.ErrUnimplemented. Description.Login says whether there is a login. An identity that lacks required
// fields is an error. The caller must close the connection.
func Client(conn grpc.ClientConnInterface) Adapter {
	conn = host.Wrap(conn)
	return client{service: authv1.NewAuthServiceClient(conn), login: authv1.NewLoginServiceClient(conn), revocations: authv1.NewRevocationServiceClient(conn), sessions: authv1.NewSessionServiceClient(conn)}
}

type client struct {
	service     authv1.AuthServiceClient
	login       authv1.LoginServiceClient
	revocations authv1.RevocationServiceClient
	sessions    authv1.SessionServiceClient
}

var (
	_ Login    = client{}
	_ Revoker  = client{}
	_ Sessions = client{}
)

func (c client) Describe(ctx context.Context) (Description, error) {
	resp, err := c.service.Describe(ctx, &authv1.DescribeRequest{})
	if err != nil {
		return Description{}, err
	}
	return Description{
		Issuer: resp.GetIssuer(), AuthorizationServers: resp.GetAuthorizationServers(),
		Audiences: resp.GetAudiences(), Login: resp.GetLogin(),
		Algorithms: resp.GetAlgorithms(), Scopes: resp.GetScopes(),
	}, nil
}

func (c client) Verify(ctx context.Context, req VerifyRequest) (Identity, error) {
	if !utf8.ValidString(req.Token) { // the protocol carries only UTF-8 text
		return Identity{}, fmt.Errorf("%w: the token is not text", plugins.ErrUnauthenticated)
	}
	resp, err := c.service.Verify(ctx, &authv1.VerifyRequest{
		Token: req.Token, Audiences: req.Audiences, Method: req.Method, Url: req.URL, Headers: req.Headers, ClientCertificateSha256: req.ClientCertificateSHA256,
	})
	if err != nil {
		return Identity{}, err
	}
	id, err := fromProto(resp.GetIdentity())
	if err == nil && id.ExpiresAt.IsZero() {
		err = errors.New("the auth plugin returned an identity that never expires")
	}
	if err != nil {
		return Identity{}, err
	}
	return id, nil
}

func (c client) Metadata(ctx context.Context) (json.RawMessage, error) {
	resp, err := c.service.Metadata(ctx, &authv1.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	document := json.RawMessage(resp.GetDocumentJson())
	if !json.Valid(document) {
		return nil, errors.New("the auth plugin returned metadata that is not JSON")
	}
	return document, nil
}

func (c client) AuthorizeURL(ctx context.Context, req AuthorizeRequest) (string, error) {
	resp, err := c.login.AuthorizeUrl(ctx, &authv1.AuthorizeUrlRequest{
		RedirectUri: req.RedirectURI, State: req.State, Nonce: req.Nonce, CodeChallenge: req.CodeChallenge,
	})
	if err != nil {
		return "", err
	}
	return resp.GetUrl(), nil
}

func (c client) Exchange(ctx context.Context, req ExchangeRequest) (Identity, error) {
	if !utf8.ValidString(req.Code) {
		return Identity{}, fmt.Errorf("%w: the code is not text", plugins.ErrUnauthenticated)
	}
	resp, err := c.login.Exchange(ctx, &authv1.ExchangeRequest{
		RedirectUri: req.RedirectURI, Code: req.Code, Nonce: req.Nonce, CodeVerifier: req.CodeVerifier,
	})
	if err != nil {
		return Identity{}, err
	}
	return fromProto(resp.GetIdentity())
}

func (c client) Watch(ctx context.Context, revoked func(Revocation) error) error {
	stream, err := c.revocations.Watch(ctx, &authv1.WatchRequest{})
	if err != nil {
		return err
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := revoked(Revocation{Issuer: resp.GetIssuer(), Subject: resp.GetSubject(), TokenSHA256: resp.GetTokenSha256()}); err != nil {
			return err
		}
	}
}

func (c client) CheckSession(ctx context.Context, req SessionCheck) (Identity, error) {
	resp, err := c.sessions.CheckSession(ctx, &authv1.CheckSessionRequest{Renewal: req.Renewal.Reveal(), Subject: req.Subject})
	if err != nil {
		return Identity{}, err
	}
	id, err := fromProto(resp.GetIdentity())
	if err == nil && id.Subject != req.Subject {
		err = fmt.Errorf("%w: the login now has another subject", plugins.ErrUnauthenticated)
	}
	if err != nil {
		return Identity{}, err
	}
	return id, nil
}

func (c client) VerifyLogout(ctx context.Context, token string) (Logout, error) {
	if !utf8.ValidString(token) {
		return Logout{}, fmt.Errorf("%w: the logout token is not text", plugins.ErrUnauthenticated)
	}
	resp, err := c.sessions.VerifyLogout(ctx, &authv1.VerifyLogoutRequest{LogoutToken: token})
	if err != nil {
		return Logout{}, err
	}
	l := Logout{
		Issuer: resp.GetIssuer(), Subject: resp.GetSubject(), SessionID: resp.GetSessionId(),
		TokenID: resp.GetTokenId(), ExpiresAt: resp.GetExpiresAt().AsTime(),
	}
	if l.Issuer == "" || l.TokenID == "" || l.Subject == "" && l.SessionID == "" {
		return Logout{}, errors.New("the auth plugin returned a logout without an issuer, an identifier, or a subject or session")
	}
	return l, nil
}
