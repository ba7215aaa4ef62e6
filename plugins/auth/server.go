package auth

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ropewalk/ropewalk/plugins"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
)

// server is the plugin's side of protocol version 1. The SDK translates the errors.
type server struct {
	authv1.UnimplementedAuthServiceServer
	adapter Adapter
}

func (s server) Describe(ctx context.Context, _ *authv1.DescribeRequest) (*authv1.DescribeResponse, error) {
	d, err := s.adapter.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return &authv1.DescribeResponse{
		Issuer: d.Issuer, AuthorizationServers: d.AuthorizationServers, Audiences: d.Audiences, Login: d.Login,
		Algorithms: d.Algorithms, Scopes: d.Scopes,
	}, nil
}

func (s server) Verify(ctx context.Context, req *authv1.VerifyRequest) (*authv1.VerifyResponse, error) {
	id, err := s.adapter.Verify(ctx, VerifyRequest{
		Token: req.GetToken(), Audiences: req.GetAudiences(), Method: req.GetMethod(), URL: req.GetUrl(),
		Headers: req.GetHeaders(), ClientCertificateSHA256: req.GetClientCertificateSha256(),
	})
	if err != nil {
		return nil, err
	}
	return &authv1.VerifyResponse{Identity: toProto(id)}, nil
}

func (s server) Metadata(ctx context.Context, _ *authv1.MetadataRequest) (*authv1.MetadataResponse, error) {
	document, err := s.adapter.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	return &authv1.MetadataResponse{DocumentJson: string(document)}, nil
}

// loginServer is the plugin's side of the Login capability.
type loginServer struct {
	authv1.UnimplementedLoginServiceServer
	login Login
}

func (s loginServer) AuthorizeUrl(ctx context.Context, req *authv1.AuthorizeUrlRequest) (*authv1.AuthorizeUrlResponse, error) {
	url, err := s.login.AuthorizeURL(ctx, AuthorizeRequest{
		RedirectURI: req.GetRedirectUri(), State: req.GetState(), Nonce: req.GetNonce(), CodeChallenge: req.GetCodeChallenge(),
	})
	if err != nil {
		return nil, err
	}
	return &authv1.AuthorizeUrlResponse{Url: url}, nil
}

func (s loginServer) Exchange(ctx context.Context, req *authv1.ExchangeRequest) (*authv1.ExchangeResponse, error) {
	id, err := s.login.Exchange(ctx, ExchangeRequest{
		RedirectURI: req.GetRedirectUri(), Code: req.GetCode(), Nonce: req.GetNonce(), CodeVerifier: req.GetCodeVerifier(),
	})
	if err != nil {
		return nil, err
	}
	return &authv1.ExchangeResponse{Identity: toProto(id)}, nil
}

// revocationServer is the plugin's side of the Revoker capability.
type revocationServer struct {
	authv1.UnimplementedRevocationServiceServer
	revoker Revoker
}

func (s revocationServer) Watch(_ *authv1.WatchRequest, stream grpc.ServerStreamingServer[authv1.WatchResponse]) error {
	return s.revoker.Watch(stream.Context(), func(r Revocation) error {
		return stream.Send(&authv1.WatchResponse{Issuer: r.Issuer, Subject: r.Subject, TokenSha256: r.TokenSHA256})
	})
}

// sessionServer is the plugin's side of the Sessions capability.
type sessionServer struct {
	authv1.UnimplementedSessionServiceServer
	sessions Sessions
}

func (s sessionServer) CheckSession(ctx context.Context, req *authv1.CheckSessionRequest) (*authv1.CheckSessionResponse, error) {
	id, err := s.sessions.CheckSession(ctx, SessionCheck{Renewal: plugins.Secret(req.GetRenewal()), Subject: req.GetSubject()})
	if err != nil {
		return nil, err
	}
	return &authv1.CheckSessionResponse{Identity: toProto(id)}, nil
}

func (s sessionServer) VerifyLogout(ctx context.Context, req *authv1.VerifyLogoutRequest) (*authv1.VerifyLogoutResponse, error) {
	l, err := s.sessions.VerifyLogout(ctx, req.GetLogoutToken())
	if err != nil {
		return nil, err
	}
	return &authv1.VerifyLogoutResponse{
		Issuer: l.Issuer, Subject: l.Subject, SessionId: l.SessionID, TokenId: l.TokenID, ExpiresAt: timestamppb.New(l.ExpiresAt),
	}, nil
}
